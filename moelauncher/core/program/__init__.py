"""The program itself: settings, its machine, its health, its releases."""
