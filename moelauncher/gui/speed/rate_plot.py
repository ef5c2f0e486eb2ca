"""What both speed plots are: tokens a second over a quiet scale, with words for the pointer.

Imports pyqtgraph (0.6 s): import this module after the first paint. GUI thread.
"""

from __future__ import annotations

import math

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QToolTip, QWidget

from moelauncher.gui.theme import font, theme

GRID_LINES = 3
#: What is lower shows its curves without a scale: the labels would take all of the room.
LOW_PLOT = 64


class QuietAxis(pg.AxisItem):
    """Labels only, no ticks; those of a bottom axis stay within the plot's width."""

    def boundingRect(self) -> QRectF:
        # A label that leaves this is dropped before it can be moved inside.
        return super().boundingRect().adjusted(-60, 0, 60, 0)

    def generateDrawSpecs(self, p: QPainter) -> tuple[object, ...] | None:
        specs = super().generateDrawSpecs(p)
        if specs is None:
            return None
        axis, _, texts = specs
        if self.orientation != "bottom":
            return axis, [], texts
        inside = []
        for area, flags, text in texts:
            moved = QRectF(area)
            moved.moveLeft(max(moved.left(), 0.0))
            moved.moveRight(min(moved.right(), self.size().width() - 2))
            inside.append((moved, flags, text))
        return axis, [], inside


class RatePlot(pg.PlotWidget):
    """tok/s upwards from 0. A subclass adds its curves, and dresses them in the theme."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(
            parent,
            background=None,
            axisItems={side: QuietAxis(side) for side in ("left", "bottom")},
        )
        self.setObjectName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        item = self.getPlotItem()
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setMouseEnabled(False, False)
        item.getViewBox().setBorder(None)
        item.layout.setContentsMargins(0, 8, 0, 0)
        self._low = False
        self._grid = [pg.InfiniteLine(angle=0) for _ in range(GRID_LINES + 1)]
        for line in self._grid:
            line.setZValue(-20)
            self.addItem(line)

    def tip_at(self, x: float) -> str:
        """The tooltip for a horizontal place in the widget."""
        raise NotImplementedError

    def set_top(self, top: float) -> None:
        """The scale from 0 to ``top``, its labels and grid lines."""
        item = self.getPlotItem()
        item.setYRange(0, top, padding=0.0)
        values = [top * n / GRID_LINES for n in range(GRID_LINES + 1)]
        item.getAxis("left").setTicks([[(value, f"{value:g}") for value in values]])
        for line, value in zip(self._grid, values, strict=True):
            line.setValue(value)

    def at(self, x: float) -> float:
        """The value of the bottom axis at a horizontal place in the widget."""
        scene = self.mapToScene(round(x), 0)
        return float(self.getPlotItem().getViewBox().mapSceneToView(QPointF(scene)).x())

    def dress_scale(self) -> None:
        """Axes and grid in the theme's colours."""
        colors = theme().colors
        # The view keeps its background as a picture, in the colours before.
        self.resetCachedContent()
        small = font("small", figures=True)
        for name in ("left", "bottom"):
            axis = self.getPlotItem().getAxis(name)
            axis.setPen(pg.mkPen(None))
            axis.setTextPen(pg.mkPen(colors.muted))
            axis.setTickFont(small)
            axis.setStyle(
                tickLength=0,
                tickTextOffset=8,
                autoExpandTextSpace=False,
                hideOverlappingLabels=False,
            )
        self.getPlotItem().getAxis("left").setWidth(36)
        self.getPlotItem().getAxis("bottom").setHeight(24)
        for line in self._grid:
            line.setPen(pg.mkPen(colors.border, width=1))

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(240, 160)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        # pyqtgraph calls this without an event while it makes the view.
        if event is None:
            return
        low = event.size().height() < LOW_PLOT
        if low != self._low:
            self._low = low
            for side in ("left", "bottom"):
                self.getPlotItem().showAxis(side, not low)
            for line in self._grid[1:]:
                line.setVisible(not low)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The pane around it scrolls; the plot itself does not zoom.
        event.ignore()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.tip_at(event.pos().x()), self)
            return True
        return super().viewportEvent(event)


def dress_region(region: pg.LinearRegionItem, brush: object) -> None:
    """A shade over the whole height, without edges."""
    region.setBrush(pg.mkBrush(brush))
    for line in region.lines:
        line.setPen(pg.mkPen(None))


def nice_top(highest: float) -> float:
    """The end of an axis from 0 that holds ``highest`` with some air, easy to cut in thirds."""
    if highest <= 0:
        return 60.0
    wanted = highest * 1.15
    magnitude = 10.0 ** math.floor(math.log10(wanted))
    for step in (1.2, 1.5, 1.8, 2.4, 3.0, 4.5, 6.0, 9.0):
        if wanted <= step * magnitude:
            return step * magnitude
    return 12.0 * magnitude
