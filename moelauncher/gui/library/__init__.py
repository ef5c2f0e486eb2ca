"""The list of models, the card, downloads."""
