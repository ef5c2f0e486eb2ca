"""Where the engine's words go: every line to the log file, warnings also into the log pane.

In: llama.cpp's own lines and the session's. Out: the pane's rows and their count in the
status line. GUI thread only.
"""

from __future__ import annotations

from moelauncher.core.engine_protocol import NativeLog
from moelauncher.core.log_file import log_native
from moelauncher.gui.main_window import MainWindow


class EngineLog:
    """Counts the warnings of this session."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._n_warnings = 0

    def take(self, event: NativeLog) -> None:
        """A line that llama.cpp wrote."""
        log_native(event)
        if event.level in ("warning", "error"):
            self.add(event.level, event.text)

    def add(self, level: str, text: str) -> None:
        """A line of the window's own; blank ones are dropped."""
        if not text.strip():
            return
        self._window.log.append(level, text.rstrip())
        if level in ("warning", "error"):
            self._n_warnings += 1
            self._window.status.set_warnings(self._n_warnings)
