"""How a model runs. The only folder that imports ``llama_cpp``."""
