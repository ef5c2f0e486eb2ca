"""What a GGUF file says: its header, and the model in it."""
