"""The gauge's legend: a swatch, a name and a number for each use of memory."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from moelauncher.gui.palette import SEGMENT, hatch_brush
from moelauncher.gui.theme import font, theme

LINE_HEIGHT = 18
SWATCH = 9
ENTRY_GAP = 13


@dataclass(frozen=True)
class LegendEntry:
    """``kind`` gives the colour, ``text`` stands beside it, ``lesson`` in the tooltip."""

    kind: str
    text: str
    lesson: str = ""


class MemoryLegend(QWidget):
    """Entries in as many rows as they need."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Memory legend"))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._entries: tuple[LegendEntry, ...] = ()
        theme().changed.connect(self.update)

    def set_entries(self, entries: tuple[LegendEntry, ...]) -> None:
        """Show ``entries``, in order."""
        if entries == self._entries:
            return
        self._entries = entries
        self.setAccessibleDescription(", ".join(entry.text for entry in entries))
        self.updateGeometry()
        self.update()

    def _places(self, room: float) -> list[tuple[LegendEntry, QRectF]]:
        metrics = QFontMetricsF(font("small", figures=True))
        places = []
        x, line = 0.0, 0
        for entry in self._entries:
            width = SWATCH + 6 + metrics.horizontalAdvance(entry.text)
            if x > 0 and x + width > room:
                x, line = 0.0, line + 1
            places.append((entry, QRectF(x, line * LINE_HEIGHT, width, LINE_HEIGHT)))
            x += width + ENTRY_GAP
        return places

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        return round(places[-1][1].bottom()) if places else LINE_HEIGHT

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, LINE_HEIGHT)

    def lesson_at(self, point: QPointF) -> str:
        """What the entry at ``point`` means; "" where there is none."""
        for entry, area in self._places(self.width()):
            if area.contains(point):
                return entry.lesson
        return ""

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.lesson_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font("small", figures=True))
        colors = theme().colors
        for entry, area in self._places(self.width()):
            swatch = QRectF(area.left(), area.center().y() - SWATCH / 2, SWATCH, SWATCH)
            painter.setPen(QPen(Qt.PenStyle.NoPen))
            if entry.kind == "over":
                painter.setBrush(hatch_brush(SEGMENT.over, self.devicePixelRatioF()))
            else:
                painter.setBrush(SEGMENT.of(entry.kind))
            painter.drawRoundedRect(swatch, 2, 2)
            painter.setPen(colors.bad if entry.kind == "over" else colors.muted)
            painter.drawText(
                area.adjusted(SWATCH + 6, 0, 4, 0), Qt.AlignmentFlag.AlignVCenter, entry.text
            )
