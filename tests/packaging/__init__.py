"""Set-up from a clone, as far as it can be tried without doing it."""
