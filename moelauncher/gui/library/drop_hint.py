"""The dashed box under the model list: says what can be dropped, and opens a chooser.

The drop itself is taken by the whole window; this box is its sign and its keyboard twin.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from moelauncher.gui import theme as look

#: How tall it is: where nothing else is listed, and under a list.
ALONE_PX, UNDER_LIST_PX = 48, 32


class DropHint(QPushButton):
    """A button that looks like a place to drop things on."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setObjectName("dropHint")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._height = ALONE_PX
        look.theme().changed.connect(self.update)

    def set_under_list(self, under_list: bool) -> None:
        """Be small where there are models already."""
        height = UNDER_LIST_PX if under_list else ALONE_PX
        if height != self._height:
            self._height = height
            self.updateGeometry()

    # Qt's own

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._height)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._height)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = look.theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        active = self.underMouse() or self.isDown()
        focused = self.hasFocus()
        pen = QPen(colors.accent if focused else colors.muted if active else colors.border)
        pen.setWidthF(look.FOCUS_RING if focused else look.BORDER)
        pen.setDashPattern([3, 3])
        painter.setPen(pen)
        painter.setBrush(colors.surface if active else Qt.BrushStyle.NoBrush)
        box = self.rect().toRectF().adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(box, look.RADIUS, look.RADIUS)
        painter.setFont(self.font())
        painter.setPen(colors.text if active else colors.muted)
        text = self.fontMetrics().elidedText(
            self.text(), Qt.TextElideMode.ElideRight, self.width() - 2 * look.GRID
        )
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, text)
