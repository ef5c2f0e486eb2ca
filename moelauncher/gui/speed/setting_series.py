"""Speeds from elsewhere in the plot by setting: another program's points, a layer split's level.

Imports pyqtgraph: import this module after the first paint. Told apart by shape and by their
name, not by colour. GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont

from moelauncher.core.speed.measured_rows import Series
from moelauncher.gui.theme import font, theme

_SYMBOLS = ("d", "s", "t", "t1", "p", "h", "star")
_POINT = 9
_NAME_LENGTH = 34
#: Names stand below the plot's upper edge, one under the other: so much of its height each.
_ROW = 0.13


class SeriesItems:
    """The pieces of one plot. Made anew for each change: they are few."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        self._plot = plot
        self._pieces: list[pg.GraphicsObject] = []

    def show(self, series: Sequence[Series], last: int, top: float) -> None:
        """Draw them over the stops 0..``last``, on a scale to ``top``."""
        for piece in self._pieces:
            self._plot.removeItem(piece)
        self._pieces = []
        n_named = 0
        for number, one in enumerate(series):
            symbol = _SYMBOLS[number % len(_SYMBOLS)]
            if one.by_stop:
                self._points(one, symbol)
                self._name(one.name, last, top * (1 - _ROW * n_named), symbol)
                n_named += 1
            else:
                self._level(one)
        self.dress()

    def _points(self, one: Series, symbol: str) -> None:
        x = [float(speed.stop) for speed in one.speeds]
        y = [speed.median for speed in one.speeds]
        self._add(pg.PlotCurveItem(x, y, antialias=True), 1)
        self._add(pg.ScatterPlotItem(x=x, y=y, symbol=symbol, size=_POINT, pxMode=True), 3)

    def _name(self, name: str, last: int, y: float, symbol: str) -> None:
        sign = {"d": "◇", "s": "□", "t": "▽", "t1": "△"}.get(symbol, "☆")
        text = name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"
        label = pg.TextItem(f"{sign} {text}", anchor=(1, 0))
        self._add(label, 6)
        label.setPos(float(max(1, last)), y)

    def _level(self, one: Series) -> None:
        """A layer split has no stop: a line at its height, and its name on it."""
        best = max(one.speeds, key=lambda speed: speed.median)
        line = pg.InfiniteLine(
            pos=best.median,
            angle=0,
            label=f"{one.name[:_NAME_LENGTH]} {best.median:.1f}",
            labelOpts={"position": 0.02, "anchors": [(0, 1), (0, 1)]},
        )
        self._add(line, 0)

    def _add(self, piece: pg.GraphicsObject, level: int) -> None:
        piece.setZValue(level)
        self._plot.addItem(piece)
        self._pieces.append(piece)

    def dress(self) -> None:
        """In the theme's colours."""
        colors = theme().colors
        small = QFont(font("small", figures=True))
        for piece in self._pieces:
            if isinstance(piece, pg.TextItem):
                piece.setColor(colors.muted)
                piece.setFont(small)
            elif isinstance(piece, pg.ScatterPlotItem):
                piece.setPen(pg.mkPen(colors.text, width=1))
                piece.setBrush(pg.mkBrush(colors.surface))
            elif isinstance(piece, pg.InfiniteLine):
                piece.setPen(pg.mkPen(colors.text, width=1, style=Qt.PenStyle.DotLine))
                piece.label.setColor(colors.text)
                piece.label.setFont(small)
            else:
                piece.setPen(pg.mkPen(colors.muted, width=1))
