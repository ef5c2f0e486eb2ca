"""How large each block of a model is: a bar a block, experts over dense weights.

Takes values, gives no signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from moelauncher.core.library.model_card import LayerSize
from moelauncher.core.units import format_bytes
from moelauncher.gui.palette import SEGMENT, hatch_brush, mixed
from moelauncher.gui.theme import GRID, font, theme

_SCALE_PX = 64
_FOOT_PX = 20
_WIDEST_BAR = 22


class LayerChart(QWidget):
    """``set_layers`` shows a model; MTP blocks, which are not loaded, are hatched."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layerChart")
        self.setAccessibleName(self.tr("Size of each layer"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._layers: tuple[LayerSize, ...] = ()
        theme().changed.connect(self.update)

    def set_layers(self, layers: Sequence[LayerSize]) -> None:
        """Show these blocks."""
        self._layers = tuple(layers)
        if self._layers:
            sizes = [layer.dense_bytes + layer.expert_bytes for layer in self._layers]
            text = self.tr("{n} layers, the smallest {least}, the largest {most}").format(
                n=len(sizes), least=format_bytes(min(sizes)), most=format_bytes(max(sizes))
            )
            self.setAccessibleDescription(text)
        self.update()

    def layer_text(self, layer: LayerSize) -> str:
        """What the tooltip says of one block."""
        kinds = {
            "attention": self.tr("attention"),
            "recurrent": self.tr("recurrent"),
            "mtp": self.tr("MTP, not loaded"),
        }
        lines = [
            self.tr("Layer {n}: {kind}").format(
                n=layer.index, kind=kinds.get(layer.kind, layer.kind)
            ),
            self.tr("dense {size}").format(size=format_bytes(layer.dense_bytes)),
        ]
        if layer.expert_bytes:
            lines.append(self.tr("experts {size}").format(size=format_bytes(layer.expert_bytes)))
        return "\n".join(lines)

    def layer_at(self, point: QPointF) -> LayerSize | None:
        """The block whose bar is at ``point``."""
        area = self._area()
        if not self._layers or not area.adjusted(0, 0, 0, _FOOT_PX).contains(point):
            return None
        step = area.width() / len(self._layers)
        index = int((point.x() - area.left()) / step)
        return self._layers[min(index, len(self._layers) - 1)]

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_SCALE_PX, GRID, -GRID, -_FOOT_PX)

    # Qt's own

    def sizeHint(self) -> QSize:
        return QSize(480, 180)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 120)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            layer = self.layer_at(QPointF(event.pos()))
            if layer is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.layer_text(layer), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme().colors
        painter = QPainter(self)
        painter.setFont(font("small", figures=True))
        most = max((la.dense_bytes + la.expert_bytes for la in self._layers), default=0)
        if not most:
            painter.setPen(colors.muted)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("No layers"))
            return
        area = self._area()
        for part, label in ((0.0, "0"), (0.5, format_bytes(most // 2)), (1.0, format_bytes(most))):
            y = round(area.bottom() - part * area.height()) + 0.5
            painter.setPen(QPen(colors.border, 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(colors.muted)
            room = QRectF(0, y - 10, _SCALE_PX - GRID, 20)
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(room, right, label)
        self._paint_bars(painter, area, most)
        self._paint_numbers(painter, area)

    def _paint_bars(self, painter: QPainter, area: QRectF, most: int) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        step = area.width() / len(self._layers)
        width = min(_WIDEST_BAR, max(1.0, step - max(1.0, step * 0.2)))
        ground = theme().colors.window
        for number, layer in enumerate(self._layers):
            left = area.left() + number * step + (step - width) / 2
            bottom = area.bottom()
            parts = ((layer.dense_bytes, SEGMENT.dense), (layer.expert_bytes, SEGMENT.experts))
            for n_bytes, color in parts:
                height = n_bytes / most * area.height()
                bar = QRectF(left, bottom - height, width, height)
                painter.fillRect(bar, mixed(color, ground, 0.6) if layer.kind == "mtp" else color)
                if layer.kind == "mtp":
                    painter.fillRect(bar, hatch_brush(color, self.devicePixelRatioF()))
                bottom -= height

    def _paint_numbers(self, painter: QPainter, area: QRectF) -> None:
        painter.setPen(theme().colors.muted)
        count = len(self._layers)
        step = area.width() / count
        every = max(1, round(count / 8))
        for number in range(0, count, every):
            room = QRectF(area.left() + number * step - 20 + step / 2, area.bottom() + 2, 40, 18)
            index = str(self._layers[number].index)
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, index)
