"""What the machine says. The only folder that imports ``pynvml`` and ``psutil``."""
