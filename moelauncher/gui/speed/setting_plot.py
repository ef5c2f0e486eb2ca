"""Speed by setting: every measured stop with its spread, and what does not fit.

Imports pyqtgraph: import this module after the first paint. In: :class:`StopSpeed` values.
GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from moelauncher.core.speed.measured_rows import Series
from moelauncher.core.speed.measurement import StopSpeed
from moelauncher.core.units import format_rate
from moelauncher.gui.palette import SEGMENT, faded
from moelauncher.gui.speed.rate_plot import RatePlot, dress_region, nice_top
from moelauncher.gui.speed.setting_series import SeriesItems
from moelauncher.gui.theme import font, theme

_POINT = 8
#: The part of the axis that is wide enough for the words in it.
_NAMED_FROM = 0.3
#: Below this part of the height a name has no room under its curve.
_NEAR_BOTTOM = 0.2
#: How strong the shade is behind the words "does not fit", which must be read on it.
UNFIT_SHADE = 0.18


class SettingPlot(RatePlot):
    """Measured tok/s against the slider's stops."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("settingPlot", parent)
        self.setAccessibleName(self.tr("Measured speed by setting"))
        self._speeds: tuple[StopSpeed, ...] = ()
        self._series: tuple[Series, ...] = ()
        self._curve: tuple[float | None, ...] = ()
        self._last = 0
        self._highest = 0.0
        self._unfit: list[pg.LinearRegionItem] = []
        self._unfit_name = pg.TextItem(self.tr("does not fit"), anchor=(0, 1))
        self._predicted = pg.PlotCurveItem(connect="finite", antialias=True)
        self._predicted_name = pg.TextItem()
        self._guessed = False
        self._line = pg.PlotCurveItem(antialias=True)
        self._bars = pg.ErrorBarItem(beam=0.0)
        self._points = pg.ScatterPlotItem(size=_POINT, pxMode=True)
        self._here = pg.InfiniteLine(angle=90)
        for level, piece in enumerate(
            (self._here, self._predicted, self._line, self._bars, self._points)
        ):
            piece.setZValue(level)
            self.addItem(piece)
        for name in (self._unfit_name, self._predicted_name):
            name.setZValue(-5)
            self.addItem(name)
        self._others = SeriesItems(self)
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
        guessed: bool = False,
    ) -> None:
        """Show the stops 0..``last``. ``here`` is the slider's stop; ``predicted`` by stop,
        ``guessed`` where nothing is known of this machine yet."""
        self._speeds = tuple(speeds)
        self._last = last
        x = np.array([one.stop for one in speeds], dtype=float)
        y = np.array([one.median for one in speeds], dtype=float)
        spread = np.array([one.mad for one in speeds], dtype=float)
        self._line.setData(x, y)
        self._points.setData(x, y)
        self._bars.setData(x=x, y=y, height=2 * spread)
        self._bars.setVisible(bool(len(x)))
        self._curve = tuple(predicted)
        curve = np.array([np.nan if rate is None else rate for rate in predicted], dtype=float)
        self._predicted.setData(np.arange(len(curve), dtype=float), curve)
        self._guessed = guessed
        self._dress_predicted()
        self._here.setVisible(here is not None)
        if here is not None:
            self._here.setValue(here)
        # What was measured sets the scale; a prediction may leave it.
        self._highest = (
            float((y + spread).max()) if len(y) else float(np.nanmax(curve, initial=0.0))
        )
        self._scale()
        self._shade(fits)
        self.setAccessibleDescription(
            ", ".join(f"{one.stop}: {format_rate(one.median)}" for one in speeds)
        )

    def set_series(self, series: Sequence[Series]) -> None:
        """Draw these beside what was measured by stop."""
        self._series = tuple(series)
        self._scale()

    def tip_at(self, x: float) -> str:
        """The numbers of the measured stop nearest to a horizontal place in the widget."""
        stop = self.at(x)
        expected = self._expected_at(stop)
        if not self._speeds and not self._series:
            return expected or self.tr("Nothing is measured yet: press Tune.")
        lines = [self._tip_of("", self._speeds, stop)] if self._speeds else []
        for one in self._series:
            if one.by_stop:
                lines.append(self._tip_of(one.name, one.speeds, stop))
            else:
                best = max(one.speeds, key=lambda speed: speed.median)
                text = self.tr("{name}, {n} layers on the GPU").format(name=one.name, n=best.stop)
                lines.append(f"{text}: {self._numbers(best)}")
        if expected:
            lines.append(expected)
        return "\n".join(lines)

    def _expected_at(self, stop: float) -> str:
        nearest = min(max(round(stop), 0), len(self._curve) - 1)
        rate = self._curve[nearest] if self._curve else None
        if rate is None:
            return ""
        told = (
            self.tr("{n}: {rate}, a rough guess")
            if self._guessed
            else self.tr("{n}: {rate} expected, not measured")
        )
        return told.format(n=nearest, rate=format_rate(rate))

    def _tip_of(self, name: str, speeds: Sequence[StopSpeed], stop: float) -> str:
        one = min(speeds, key=lambda speed: abs(speed.stop - stop))
        text = f"{one.stop}: {self._numbers(one)}"
        return f"{name}, {text}" if name else text

    def _numbers(self, one: StopSpeed) -> str:
        text = self.tr("{rate} ± {mad:.2g}, {n} repeats").format(
            rate=format_rate(one.median), mad=one.mad, n=len(one.rates)
        )
        if one.prompt_median is not None:
            text += self.tr(", prompt {rate}").format(rate=format_rate(one.prompt_median))
        if one.n_disturbed:
            text += self.tr(", {n} disturbed left out").format(n=one.n_disturbed)
        return text

    # Inside

    def _scale(self) -> None:
        item = self.getPlotItem()
        rates = [speed.median for one in self._series for speed in one.speeds]
        top = nice_top(max([self._highest, *rates]))
        self.set_top(top)
        self._others.show(self._series, self._last, top)
        self._name_predicted(top)
        margin = max(0.5, self._last * 0.02)
        item.setXRange(-margin, max(1, self._last) + margin, padding=0.0)
        step = max(1, round(self._last / 4))
        stops = sorted({*range(0, self._last + 1, step), self._last})
        if len(stops) > 2 and stops[-1] - stops[-2] < step / 2:
            del stops[-2]
        item.getAxis("bottom").setTicks([[(stop, str(stop)) for stop in stops]])

    def _name_predicted(self, top: float) -> None:
        """At the curve's end: below it, where it falls to, unless that is the very bottom."""
        known = [(stop, rate) for stop, rate in enumerate(self._curve) if rate is not None]
        self._predicted_name.setVisible(bool(known))
        if known:
            stop, rate = known[-1]
            self._predicted_name.setAnchor((1, 1 if rate < _NEAR_BOTTOM * top else 0))
            self._predicted_name.setPos(float(stop), min(rate, top))

    def _shade(self, fits: Sequence[bool | None]) -> None:
        for region in self._unfit:
            self.removeItem(region)
        self._unfit = []
        self._unfit_name.hide()
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
                if stop - start >= _NAMED_FROM * len(fits):
                    self._unfit_name.setPos(start - 0.5, 0.0)
                    self._unfit_name.show()
                start = None

    def _dress(self) -> None:
        self.dress_scale()
        colors = theme().colors
        self._line.setPen(pg.mkPen(faded(colors.accent, 0.5), width=1))
        self._points.setPen(pg.mkPen(None))
        self._points.setBrush(pg.mkBrush(colors.accent))
        self._bars.setData(pen=pg.mkPen(colors.accent, width=2))
        self._dress_predicted()
        self._here.setPen(pg.mkPen(colors.mark, width=1, style=Qt.PenStyle.DashLine))
        for region in self._unfit:
            self._dress_region(region)
        self._unfit_name.setColor(colors.bad)
        self._unfit_name.setFont(font("small"))
        self._others.dress()
        self.update()

    def _dress_predicted(self) -> None:
        """A guess is told from what rests on a measurement by its line and by its name."""
        colors = theme().colors
        style = Qt.PenStyle.DotLine if self._guessed else Qt.PenStyle.DashLine
        width = 2.0 if self._guessed else 1.5
        self._predicted.setPen(pg.mkPen(colors.muted, width=width, style=style))
        self._predicted_name.setText(self.tr("guess") if self._guessed else self.tr("expected"))
        self._predicted_name.setColor(colors.muted)
        self._predicted_name.setFont(font("small"))

    def _dress_region(self, region: pg.LinearRegionItem) -> None:
        dress_region(region, faded(SEGMENT.over, UNFIT_SHADE))
