"""Speed by setting: every measured stop with its spread, and what does not fit.

Imports pyqtgraph: import this module after the first paint. In: :class:`StopSpeed` values.
GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QToolTip, QWidget

from moelauncher.core.measurement import StopSpeed
from moelauncher.core.units import format_rate
from moelauncher.gui.speed_plot import GRID_LINES, QuietAxis, nice_top
from moelauncher.gui.theme import SEGMENT, faded, font, theme

_POINT = 8


class SettingPlot(pg.PlotWidget):
    """Measured tok/s against the slider's stops."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            parent,
            background=None,
            axisItems={side: QuietAxis(side) for side in ("left", "bottom")},
        )
        self.setObjectName("settingPlot")
        self.setAccessibleName(self.tr("Measured speed by setting"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._speeds: tuple[StopSpeed, ...] = ()
        self._last = 0
        item = self.getPlotItem()
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setMouseEnabled(False, False)
        item.getViewBox().setBorder(None)
        item.layout.setContentsMargins(0, 8, 0, 0)
        self._grid = [pg.InfiniteLine(angle=0) for _ in range(GRID_LINES + 1)]
        for line in self._grid:
            line.setZValue(-20)
            self.addItem(line)
        self._unfit: list[pg.LinearRegionItem] = []
        self._predicted = pg.PlotCurveItem(connect="finite", antialias=True)
        self._line = pg.PlotCurveItem(antialias=True)
        self._bars = pg.ErrorBarItem(beam=0.0)
        self._points = pg.ScatterPlotItem(size=_POINT, pxMode=True)
        self._here = pg.InfiniteLine(angle=90)
        for level, piece in enumerate(
            (self._here, self._predicted, self._line, self._bars, self._points)
        ):
            piece.setZValue(level)
            self.addItem(piece)
        self._dress()
        theme().changed.connect(self._dress)
        self.set_speeds((), 0)

    @property
    def speeds(self) -> tuple[StopSpeed, ...]:
        """As set."""
        return self._speeds

    def set_speeds(
        self,
        speeds: Sequence[StopSpeed],
        last: int,
        *,
        fits: Sequence[bool | None] = (),
        here: int | None = None,
        predicted: Sequence[float | None] = (),
    ) -> None:
        """Show the stops 0..``last``. ``here`` is the slider's stop; ``predicted`` by stop."""
        self._speeds = tuple(speeds)
        self._last = last
        x = np.array([one.stop for one in speeds], dtype=float)
        y = np.array([one.median for one in speeds], dtype=float)
        spread = np.array([one.mad for one in speeds], dtype=float)
        self._line.setData(x, y)
        self._points.setData(x, y)
        self._bars.setData(x=x, y=y, height=2 * spread)
        self._bars.setVisible(bool(len(x)))
        curve = np.array([np.nan if rate is None else rate for rate in predicted], dtype=float)
        self._predicted.setData(np.arange(len(curve), dtype=float), curve)
        self._here.setVisible(here is not None)
        if here is not None:
            self._here.setValue(here)
        # What was measured sets the scale; a prediction may leave it.
        highest = float((y + spread).max()) if len(y) else float(np.nanmax(curve, initial=0.0))
        self._scale(nice_top(highest))
        self._shade(fits)
        self.setAccessibleDescription(
            ", ".join(f"{one.stop}: {format_rate(one.median)}" for one in speeds)
        )

    def tip_at(self, x: float) -> str:
        """The numbers of the measured stop nearest to a horizontal place in the widget."""
        if not self._speeds:
            return self.tr("Nothing is measured yet: press Tune.")
        scene = self.mapToScene(round(x), 0)
        stop = self.getPlotItem().getViewBox().mapSceneToView(QPointF(scene)).x()
        one = min(self._speeds, key=lambda speed: abs(speed.stop - stop))
        text = self.tr("{stop}: {rate} ± {mad:.2g}, {n} repeats").format(
            stop=one.stop, rate=format_rate(one.median), mad=one.mad, n=len(one.rates)
        )
        if one.prompt_median is not None:
            text += self.tr(", prompt {rate}").format(rate=format_rate(one.prompt_median))
        if one.n_disturbed:
            text += self.tr(", {n} disturbed left out").format(n=one.n_disturbed)
        return text

    # Inside

    def _scale(self, top: float) -> None:
        item = self.getPlotItem()
        item.setYRange(0, top, padding=0.0)
        values = [top * n / GRID_LINES for n in range(GRID_LINES + 1)]
        item.getAxis("left").setTicks([[(value, f"{value:g}") for value in values]])
        for line, value in zip(self._grid, values, strict=True):
            line.setValue(value)
        margin = max(0.5, self._last * 0.02)
        item.setXRange(-margin, max(1, self._last) + margin, padding=0.0)
        step = max(1, round(self._last / 4))
        stops = sorted({*range(0, self._last + 1, step), self._last})
        if len(stops) > 2 and stops[-1] - stops[-2] < step / 2:
            del stops[-2]
        item.getAxis("bottom").setTicks([[(stop, str(stop)) for stop in stops]])

    def _shade(self, fits: Sequence[bool | None]) -> None:
        for region in self._unfit:
            self.removeItem(region)
        self._unfit = []
        start: int | None = None
        for stop, fit in enumerate([*fits, True]):
            if fit is False and start is None:
                start = stop
            elif fit is not False and start is not None:
                region = pg.LinearRegionItem((start - 0.5, stop - 0.5), movable=False)
                region.setZValue(-10)
                self.addItem(region)
                self._unfit.append(region)
                self._dress_region(region)
                start = None

    def _dress(self) -> None:
        colors = theme().colors
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
        self._line.setPen(pg.mkPen(faded(colors.accent, 0.5), width=1))
        self._points.setPen(pg.mkPen(None))
        self._points.setBrush(pg.mkBrush(colors.accent))
        self._bars.setData(pen=pg.mkPen(colors.accent, width=2))
        self._predicted.setPen(pg.mkPen(colors.muted, width=1, style=Qt.PenStyle.DashLine))
        self._here.setPen(pg.mkPen(colors.mark, width=1, style=Qt.PenStyle.DashLine))
        for line in self._grid:
            line.setPen(pg.mkPen(colors.border, width=1))
        for region in self._unfit:
            self._dress_region(region)
        self.update()

    def _dress_region(self, region: pg.LinearRegionItem) -> None:
        region.setBrush(pg.mkBrush(faded(SEGMENT.over, 0.18)))
        for line in region.lines:
            line.setPen(pg.mkPen(None))

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(240, 160)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.tip_at(event.pos().x()), self)
            return True
        return super().viewportEvent(event)
