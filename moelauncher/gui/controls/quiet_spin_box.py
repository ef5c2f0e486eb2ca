"""A number field without arrows, whose wheel does nothing in passing."""

from __future__ import annotations

from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QSpinBox, QWidget

from moelauncher.gui.theme import CONTROL_HEIGHT, GRID, font


class QuietSpinBox(QSpinBox):
    """A number field without arrows; the wheel moves it only when it has the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # The style sheet makes the arrows vanish; NoButtons would leave no room for the text.
        self.setFont(font("body", figures=True))
        self.setFixedHeight(max(CONTROL_HEIGHT, self.fontMetrics().height() + 2 * GRID))
        self.setKeyboardTracking(False)
        self.lineEdit().setAcceptDrops(False)
        self.lineEdit().setTextMargins(GRID, 0, GRID, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
