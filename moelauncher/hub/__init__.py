"""How a model is fetched: the only room that imports ``huggingface_hub``."""
