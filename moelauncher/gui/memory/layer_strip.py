"""One cell a layer: whose experts are in VRAM, whose in RAM; click or drag to move the border.

In: :class:`ModelFacts` and :class:`Placement`. Out: the slider stop that was pointed at.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from moelauncher.core.files.model_facts import LayerFacts, ModelFacts
from moelauncher.core.memory.placement import Placement
from moelauncher.core.units import format_bytes
from moelauncher.gui.palette import SEGMENT, faded
from moelauncher.gui.theme import theme

STRIP_HEIGHT = 16
WIDEST_CELL = 24
NARROW_PITCH = 5.0


class LayerStrip(QWidget):
    """Filled: in VRAM. Outlined: in RAM. Orange: experts; blue: a block without experts.

    Signals:
        stop_requested: the slider stop that a click or drag points at (models with experts).
    """

    stop_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layerStrip")
        self.setAccessibleName(self.tr("Layers"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._facts: ModelFacts | None = None
        self._placement: Placement | None = None
        self._on_cpu: frozenset[int] = frozenset()
        theme().changed.connect(self.update)

    def set_layers(self, facts: ModelFacts | None, placement: Placement | None) -> None:
        """Show the layers of a model under a placement; None empties the strip."""
        self._facts = facts
        self._placement = placement
        self._on_cpu = frozenset(placement.cpu_expert_layers) if placement else frozenset()
        cursor = Qt.CursorShape.ArrowCursor
        if facts and facts.expert_layers:
            cursor = Qt.CursorShape.PointingHandCursor
        self.setCursor(cursor)
        self.setAccessibleDescription(self._spoken())
        self.update()

    def _layers(self) -> tuple[LayerFacts, ...]:
        return self._facts.layers if self._facts else ()

    def _on_gpu(self, layer: LayerFacts) -> bool:
        """Whether what counts of the layer (experts, or else all of it) lies in VRAM."""
        if layer.holds_experts and layer.index in self._on_cpu:
            return False
        devices = self._placement.layer_devices if self._placement else ()
        return layer.index < len(devices) and devices[layer.index] >= 0

    def _spoken(self) -> str:
        expert_layers = [layer for layer in self._layers() if layer.holds_experts]
        gpu = sum(self._on_gpu(layer) for layer in expert_layers)
        return self.tr("{gpu} layers with their experts in VRAM, {ram} in RAM").format(
            gpu=gpu, ram=len(expert_layers) - gpu
        )

    # Geometry

    def sizeHint(self) -> QSize:
        return QSize(200, STRIP_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, STRIP_HEIGHT)

    def _pitch(self) -> float:
        count = len(self._layers())
        return min(WIDEST_CELL, self.width() / count) if count else 0.0

    def cell_rect(self, position: int) -> QRectF:
        """Where the cell of the layer at ``position`` in the model is painted."""
        pitch = self._pitch()
        left = round(position * pitch)
        if pitch >= NARROW_PITCH:
            width = round((position + 1) * pitch) - left - 2
        else:
            # Cells of one width, since a pixel more or less would show as a pattern.
            width = max(1, int(pitch) - (1 if pitch >= 2 else 0))
        return QRectF(left, 1, width, STRIP_HEIGHT - 2)

    def _position_at(self, x: float) -> int | None:
        pitch = self._pitch()
        if not pitch:
            return None
        position = int(x // pitch)
        return position if 0 <= position < len(self._layers()) else None

    def stop_at(self, x: float, toggles: bool) -> int | None:
        """The stop that ``x`` points at; ``toggles``: a click on a border cell changes it."""
        if self._facts is None or self._placement is None or not self._facts.expert_layers:
            return None
        pitch = self._pitch()
        indices = [p for p, layer in enumerate(self._layers()) if layer.holds_experts]
        before = sum((position + 0.5) * pitch <= x for position in indices)
        position = self._position_at(x)
        if toggles and position is not None and self._layers()[position].holds_experts:
            # A click on a cell is about this cell: it changes sides.
            before = indices.index(position)
            if (self._layers()[position].index in self._on_cpu) == (
                self._placement.which == "last"
            ):
                before += 1
        return len(indices) - before if self._placement.which == "last" else before

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._layers():
            painter.setPen(QPen(theme().colors.border, 1, Qt.PenStyle.DashLine))
            painter.drawRoundedRect(QRectF(0.5, 1.5, self.width() - 1, STRIP_HEIGHT - 3), 2, 2)
            return
        for position, layer in enumerate(self._layers()):
            self._paint_cell(painter, self.cell_rect(position), layer)

    def _paint_cell(self, painter: QPainter, cell: QRectF, layer: LayerFacts) -> None:
        radius = min(2.0, cell.width() / 4)
        if not layer.loaded:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme().colors.disabled, 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(cell.adjusted(0.5, 3.5, -0.5, -3.5), radius, radius)
            return
        color: QColor = SEGMENT.experts if layer.holds_experts else SEGMENT.dense
        if self._on_gpu(layer):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            painter.drawRoundedRect(cell, radius, radius)
        elif self._pitch() >= NARROW_PITCH:
            painter.setPen(QPen(color, 1))
            painter.setBrush(faded(color, 0.12))
            painter.drawRoundedRect(cell.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        else:
            # Too narrow for an outline: a low cell is the other mark of "not in VRAM".
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            painter.drawRect(cell.adjusted(0, cell.height() * 0.65, 0, 0))

    # Mouse and tooltips

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.isEnabled():
            self._ask(self.stop_at(event.position().x(), toggles=True))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self.isEnabled():
            self._ask(self.stop_at(event.position().x(), toggles=False))

    def _ask(self, stop: int | None) -> None:
        if stop is not None and self._placement is not None and stop != self._placement.cpu_moe:
            self.stop_requested.emit(stop)

    def tip_at(self, position: QPointF) -> str:
        """The tooltip for a place in the strip."""
        index = self._position_at(position.x())
        if index is None:
            return ""
        layer = self._layers()[index]
        if not layer.loaded:
            return self.tr(
                "Layer {index}: multi-token prediction. It is not loaded and takes no memory."
            ).format(index=layer.index)
        kind = self.tr("recurrent") if layer.kind == "recurrent" else self.tr("attention")
        place = self._device_name(layer)
        dense = self.tr("Layer {index} ({kind}): {size} of dense weights on {place}.").format(
            index=layer.index, kind=kind, size=format_bytes(layer.dense_bytes), place=place
        )
        if not layer.holds_experts:
            return dense + "\n" + self.tr("It has no routed experts, so the slider passes it by.")
        where = place if self._on_gpu(layer) else self.tr("RAM")
        experts = self.tr("Its experts, {size}, are in {place}.").format(
            size=format_bytes(layer.expert_bytes), place=where
        )
        return f"{dense}\n{experts}"

    def _device_name(self, layer: LayerFacts) -> str:
        placement = self._placement
        if placement is None or layer.index >= len(placement.layer_devices):
            return self.tr("RAM")
        device = placement.layer_devices[layer.index]
        return placement.devices[device].name if device >= 0 else self.tr("RAM")

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.tip_at(QPointF(event.pos())), self)
            return True
        return super().event(event)
