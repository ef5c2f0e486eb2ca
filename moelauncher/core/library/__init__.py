"""The models one has: folders, lists, groups, cards, and what can be fetched."""
