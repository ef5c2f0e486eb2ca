"""A combo box with an arrow of its own, since a styled one has none without image files."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

from moelauncher.gui.theme import theme


def draw_chevron(painter: QPainter, center: QPointF, size: float = 4.0, up: bool = False) -> None:
    """A small downward (or upward) chevron around ``center`` in the painter's pen."""
    rise = size / 2 * (-1 if up else 1)
    painter.drawPolyline(
        QPolygonF(
            [
                QPointF(center.x() - size, center.y() - rise),
                QPointF(center.x(), center.y() + rise),
                QPointF(center.x() + size, center.y() - rise),
            ]
        )
    )


class ChevronComboBox(QComboBox):
    """Looks like the other controls; the wheel moves it only when it has the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme().changed.connect(self.update)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # In a pane that scrolls, passing over a box must not change what it says.
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.muted if self.isEnabled() else colors.disabled, 1.5))
        draw_chevron(painter, QPointF(self.width() - 14.5, self.height() / 2 + 0.5))
