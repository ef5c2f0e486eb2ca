"""Conversations: the tree of turns, its store, templates, sampling, reasoning."""
