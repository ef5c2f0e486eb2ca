"""How fast it is: predicted, measured, searched, kept and shared."""
