"""The gauge, the slider, the load."""
