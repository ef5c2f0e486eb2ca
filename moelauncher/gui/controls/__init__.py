"""Widgets that every room uses, and that know none of them."""
