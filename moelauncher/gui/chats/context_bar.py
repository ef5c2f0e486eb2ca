"""A small bar: how much of the context is in use. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from moelauncher.gui import theme as look

WIDE, TALL = 64, 4


class ContextBar(QWidget):
    """Filled as far as the context is; in the warning's colour where it is nearly full."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._share: float | None = None
        self._warns = False
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        look.theme().changed.connect(self.update)

    def set_share(self, share: float | None, warns: bool) -> None:
        """``share`` of the context, 0 to 1; None shows nothing, and keeps its place."""
        self._share, self._warns = share, warns
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(WIDE, TALL)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._share is None:
            return
        colors = look.theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect())
        painter.setBrush(colors.raised if colors.dark else colors.border)
        painter.drawRoundedRect(track, 2, 2)
        track.setWidth(max(TALL, track.width() * min(1.0, max(0.0, self._share))))
        painter.setBrush(colors.warn if self._warns else colors.accent)
        painter.drawRoundedRect(track, 2, 2)
