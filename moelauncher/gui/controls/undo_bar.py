"""A line that says what was just deleted, and takes it back.

It stays for some seconds, or until something else is deleted. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.controls.elided_label import ElidedLabel

SHOWN_MS = 12_000


class UndoBar(QWidget):
    """Hidden until :meth:`offer`; ``side_px``: room at its left and right."""

    def __init__(self, side_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._take_back: Callable[[], None] | None = None
        self.text = ElidedLabel("", self)
        self.text.setFont(look.font("small"))
        look.set_tone(self.text, "muted")
        self.button = QPushButton(self.tr("Undo"), self)
        self.button.setObjectName("undoButton")
        self.button.setProperty("kind", "chip")
        self.button.clicked.connect(self.undo)
        row = QHBoxLayout(self)
        row.setContentsMargins(side_px, look.HALF, side_px, look.HALF)
        row.setSpacing(look.GRID)
        row.addWidget(self.text, 1)
        row.addWidget(self.button)
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self.clear)
        self.hide()

    def offer(self, text: str, take_back: Callable[[], None]) -> None:
        """Say ``text``; Undo calls ``take_back``."""
        self._take_back = take_back
        self.text.set_text(text)
        self.button.setAccessibleName(self.tr("Undo: {what}").format(what=text))
        self.show()
        self._timer.start()

    def undo(self) -> None:
        """Take it back, if there is anything to take back."""
        take_back = self._take_back
        self.clear()
        if take_back is not None:
            take_back()

    def clear(self) -> None:
        """Offer nothing any more."""
        self._take_back = None
        self._timer.stop()
        self.hide()
