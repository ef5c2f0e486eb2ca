"""A dialog over something that runs: Cancel ends it first, and closes the dialog after that.

In: values by methods. Out: ``cancelled``. It decides nothing. GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QPushButton, QWidget

from moelauncher.gui.controls.progress_line import ProgressLine


class RunDialog(QDialog):
    """One run, before, while and after it. Blocks the window beneath it.

    Who derives lays out ``progress`` and ``cancel``.

    Signals:
        cancelled: end what runs.
    """

    cancelled = Signal()

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setModal(True)
        self._running = False
        self.progress = ProgressLine()
        self.cancel = QPushButton(self.tr("Close"))
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)

    def set_running(self, running: bool) -> None:
        """Whether it runs."""
        self._running = running
        self.cancel.setEnabled(True)
        self.cancel.setText(self.tr("Cancel") if running else self.tr("Close"))

    def set_progress(self, text: str, fraction: float | None) -> None:
        """How far it is."""
        self.progress.set_progress(text, fraction)

    def reject(self) -> None:
        # The button, Escape, and the frame's button alike.
        if self._running:
            self.cancel.setEnabled(False)
            self.cancelled.emit()
        else:
            super().reject()
