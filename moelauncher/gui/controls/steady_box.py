"""A box that keeps its height while its content grows and shrinks: nothing below it jumps."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget


class SteadyBox(QWidget):
    """``column`` takes the content, which stands at the top.

    Reserves ``least`` pixels, and more once the content has needed them at this width.
    """

    def __init__(self, least: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._least = least
        self._height = least
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        self.column = QVBoxLayout()
        outer.addLayout(self.column)
        outer.addStretch(1)

    def reserve(self, least: int) -> None:
        """Keep at least so many pixels from now on; never fewer than before."""
        if least > self._least:
            self._least = least
            self._height = max(self._height, least)
            self.updateGeometry()

    def _grow(self) -> None:
        needed = self.column.totalHeightForWidth(self.width())
        if needed > self._height:
            self._height = needed
            self.updateGeometry()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._grow()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._height = self._least
            self._grow()
            self.updateGeometry()

    def hasHeightForWidth(self) -> bool:
        return False

    def sizeHint(self) -> QSize:
        return QSize(200, self._height)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._height)
