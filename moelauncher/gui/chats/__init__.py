"""The chat: turns, composer, chats' list."""
