"""What one sees. The only folder that imports ``PySide6``, ``pyqtgraph`` and ``pygments``."""
