"""The live speed curve. Imports pyqtgraph (0.6 s): import this module after the first paint.

In: a :class:`SpeedHistory`. It repaints at most 30 times a second, and only when told that
something changed. GUI thread.
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import QWidget

from moelauncher.core.units import format_rate
from moelauncher.gui.palette import faded
from moelauncher.gui.speed.rate_plot import RatePlot, dress_region, nice_top
from moelauncher.gui.speed.speed_history import SpeedHistory
from moelauncher.gui.theme import font, theme

REPAINT_MS = 33
PEN_WIDTH = 2
#: Labels of marks stand in so many rows at most, each so much of the plot's height.
MARK_ROWS, MARK_ROW = 4, 0.15


class SpeedPlot(RatePlot):
    """Decode speed over the last three minutes, with placement changes and prompt phases."""

    def __init__(self, history: SpeedHistory, parent: QWidget | None = None) -> None:
        super().__init__("speedPlot", parent)
        self.setAccessibleName(self.tr("Live speed in tokens a second"))
        self._history = history
        self._top = 0.0
        self._window_s = 0.0
        self._marks: list[tuple[pg.InfiniteLine, pg.TextItem]] = []
        self._shades: list[pg.LinearRegionItem] = []
        self._dirty = False
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        self._due.setInterval(REPAINT_MS)
        self._due.timeout.connect(self.refresh)
        self._curve = pg.PlotCurveItem(connect="finite", antialias=True)
        self._curve.setZValue(5)
        self.addItem(self._curve)
        self._dress()
        theme().changed.connect(self._dress)
        self.refresh()

    def changed(self) -> None:
        """Something in the history changed: repaint soon."""
        self._dirty = True
        if self.isVisible() and not self._due.isActive():
            self._due.start()

    def refresh(self) -> None:
        """Show the history as it is now."""
        self._dirty = False
        now_s = self._history.now_s
        self._show_window(self._history.window_s)
        times, rates = self._history.arrays(now_s - self._window_s)
        self._curve.setData(times - now_s, rates)
        self._scale(rates)
        self._show_marks(now_s)
        self._show_shades(now_s)

    @property
    def window_s(self) -> float:
        """How many seconds the time axis shows."""
        return self._window_s

    def _show_window(self, window_s: float) -> None:
        if window_s == self._window_s:
            return
        self._window_s = window_s
        # Time runs from -window_s to 0, "now": the axes stand still while the curve moves.
        item = self.getPlotItem()
        item.setXRange(-window_s, 0.0, padding=0.0)
        # A tick on the very edge may fall outside by rounding, and would go without a label.
        edge_s = window_s * 1e-5
        middle_s = window_s / 2
        labels = [
            (edge_s - window_s, self._ago(window_s)),
            (-middle_s, self._ago(middle_s)),
            (-edge_s, self.tr("now")),
        ]
        item.getAxis("bottom").setTicks([labels])

    def _ago(self, seconds: float) -> str:
        whole = round(seconds)
        if whole < 60:
            return self.tr("−{n} s").format(n=whole)
        if whole % 60 == 0:
            return self.tr("−{n} min").format(n=whole // 60)
        return f"−{whole // 60}:{whole % 60:02}"

    def _scale(self, rates: NDArray[np.float64]) -> None:
        finite = rates[np.isfinite(rates)]
        highest = float(finite.max()) if len(finite) else 0.0
        wanted = nice_top(highest)
        # Grows at once, shrinks only when most of it is empty: a scale that hops hides change.
        if wanted > self._top or highest < self._top * 0.35 or self._top == 0.0:
            self._top = wanted
            self.set_top(wanted)

    def _show_marks(self, now_s: float) -> None:
        marks = self._history.marks(now_s - self._window_s)
        while len(self._marks) < len(marks):
            line = pg.InfiniteLine(angle=90)
            text = pg.TextItem(anchor=(0, 0))
            for item in (line, text):
                item.setZValue(4)
                self.addItem(item)
            self._marks.append((line, text))
            self._dress_mark(line, text)
        width = max(1.0, self.getPlotItem().getViewBox().width())
        ends = [0.0] * MARK_ROWS  # pixels up to which each row of labels is taken
        for index, (line, text) in enumerate(self._marks):
            shown = index < len(marks)
            line.setVisible(shown)
            text.setVisible(shown)
            if shown:
                mark = marks[index]
                line.setValue(mark.time_s - now_s)
                text.setText(mark.text)
                # A label that would leave the plot at its right edge turns to the left.
                at = (mark.time_s - now_s) / self._window_s * width + width
                length = text.boundingRect().width()
                turned = at + length > width
                start = at - length if turned else at
                # One that would lie on another goes a row lower.
                row = next((n for n, end in enumerate(ends) if end <= start), MARK_ROWS - 1)
                ends[row] = start + length
                text.setAnchor((1 if turned else 0, 0))
                text.setPos(mark.time_s - now_s, self._top * (1 - row * MARK_ROW))

    def _show_shades(self, now_s: float) -> None:
        shades = self._history.shades(now_s - self._window_s)
        while len(self._shades) < len(shades):
            region = pg.LinearRegionItem(movable=False)
            region.setZValue(-10)
            self.addItem(region)
            self._shades.append(region)
            self._dress_shade(region)
        for index, region in enumerate(self._shades):
            region.setVisible(index < len(shades))
            if index < len(shades):
                start_s, end_s = shades[index]
                region.setRegion((start_s - now_s, end_s - now_s))

    # Colours

    def _dress(self) -> None:
        self.dress_scale()
        self._curve.setPen(pg.mkPen(theme().colors.accent, width=PEN_WIDTH))
        for line, text in self._marks:
            self._dress_mark(line, text)
        for region in self._shades:
            self._dress_shade(region)
        self.update()

    def _dress_mark(self, line: pg.InfiniteLine, text: pg.TextItem) -> None:
        color = theme().colors.mark
        line.setPen(pg.mkPen(color, width=1, style=Qt.PenStyle.DashLine))
        text.setColor(color)
        text.setFont(QFont(font("small", figures=True)))

    def _dress_shade(self, region: pg.LinearRegionItem) -> None:
        dress_region(region, faded(theme().colors.accent, 0.12))

    # Qt

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._dirty:
            self.changed()

    def tip_at(self, x: float) -> str:
        """The tooltip for a horizontal place in the widget: the rate there."""
        time_s = self.at(x) + self._history.now_s
        rate = self._history.rate_at(time_s)
        if rate is None:
            return self.tr("Decode speed over the last seconds. Shaded: a prompt is read.")
        return self.tr("{rate}, {ago} s ago").format(
            rate=format_rate(rate), ago=max(0, round(self._history.now_s - time_s))
        )
