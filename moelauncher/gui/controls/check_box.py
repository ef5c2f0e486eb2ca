"""A check box with a tick of its own, since a styled one has none without image files."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionButton, QWidget

from moelauncher.gui.palette import text_on
from moelauncher.gui.theme import theme


class TickBox(QCheckBox):
    """Looks like the other controls in both schemes."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        theme().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self.isChecked():
            return
        option = QStyleOptionButton()
        self.initStyleOption(option)
        area = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(text_on(theme().colors.accent), 1.8))
        center = QPointF(area.center()) + QPointF(0.5, 0.5)
        painter.drawPolyline(
            QPolygonF(
                [
                    center + QPointF(-3.5, 0),
                    center + QPointF(-1, 2.7),
                    center + QPointF(3.7, -2.7),
                ]
            )
        )
