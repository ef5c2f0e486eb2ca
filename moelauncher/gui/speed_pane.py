"""The Speed pane: the live curve, and the numbers of the reply below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QStackedLayout, QWidget

from moelauncher.core.units import format_rate
from moelauncher.gui.pane import Pane, plain_label
from moelauncher.gui.speed_history import SpeedHistory
from moelauncher.gui.steady_label import SteadyLabel
from moelauncher.gui.theme import GRID, HALF, font

if TYPE_CHECKING:
    from moelauncher.gui.speed_plot import SpeedPlot

PLOT_HEIGHT = 112
TALLEST_PLOT = 320


class SpeedPane(Pane):
    """Keeps the history from the start; the plot itself comes with :meth:`build_plot`.

    ``views`` is a stack: the live curve is its first page, other views become further ones.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        title = self.tr("Speed")
        self.title_label.setText(title)
        self.setAccessibleName(title)
        self.title_row.addStretch(1)
        self.history = SpeedHistory()
        self.plot: SpeedPlot | None = None

        holder = QWidget()
        holder.setMinimumHeight(PLOT_HEIGHT)
        holder.setMaximumHeight(TALLEST_PLOT)
        holder.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.views = QStackedLayout(holder)
        self.views.setStackingMode(QStackedLayout.StackingMode.StackAll)
        self.empty = plain_label(
            self.tr("Launch a model and send a message.\nIts speed appears here."), "muted"
        )
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.views.addWidget(self.empty)
        self.body.addWidget(holder, 1)

        row = QHBoxLayout()
        row.setSpacing(GRID * 2)
        figure_row = QHBoxLayout()
        figure_row.setSpacing(HALF)
        self.figure = QLabel("–")
        self.figure.setTextFormat(Qt.TextFormat.PlainText)
        self.figure.setFont(font("figure", bold=True, figures=True))
        self.figure.setAccessibleName(self.tr("Speed now"))
        unit = plain_label(self.tr("tok/s"), "muted")
        unit.setFont(font("small"))
        figure_row.addWidget(self.figure, 0, Qt.AlignmentFlag.AlignBaseline)
        figure_row.addWidget(unit, 0, Qt.AlignmentFlag.AlignBaseline)
        self.average = SteadyLabel(2, font("small", figures=True), "muted")
        self.note = SteadyLabel(2, font("small", figures=True), "muted")
        self.average.setAccessibleName(self.tr("Average speed of this reply"))
        self.note.setAccessibleName(self.tr("About the speed"))
        for label in (self.average, self.note):
            label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(figure_row)
        row.addWidget(self.average, 2)
        row.addWidget(self.note, 3)
        self.body.addLayout(row)
        self.body.addStretch(0)

    def build_plot(self) -> None:
        """Make the plot. Call once, after the window's first paint."""
        if self.plot is not None:
            return
        from moelauncher.gui.speed_plot import SpeedPlot

        self.plot = SpeedPlot(self.history)
        self.views.addWidget(self.plot)
        self.views.setCurrentWidget(self.empty)
        self._changed()

    def add_rate(self, time_s: float, tok_s: float | None) -> None:
        """A sample of the decode speed; None while nothing is generated (a gap)."""
        self.history.add_rate(time_s, tok_s)
        self._changed()

    def mark(self, time_s: float, text: str) -> None:
        """A placement change, as "30 › 24"."""
        self.history.mark(time_s, text)
        self._changed()

    def shade_prompt(self, start_s: float, end_s: float) -> None:
        """A prompt was read in this time; with the same start again, the shade grows."""
        self.history.shade(start_s, end_s)
        self._changed()

    def set_summary(
        self, rate: float | None, average: float | None = None, note: str = "", tip: str = ""
    ) -> None:
        """The speed now, this reply's average, and a remark ("0.9 GiB VRAM a token")."""
        self.figure.setText("–" if rate is None else format_rate(rate).split(" ", maxsplit=1)[0])
        self.average.set_text(
            ""
            if average is None
            else self.tr("average {rate}").format(rate=format_rate(average).split(" ")[0])
        )
        self.note.set_text(note)
        self.note.setToolTip(tip)
        if self.plot is not None:
            self.plot.setAccessibleDescription(f"{format_rate(rate)} {self.average.text()}")

    def _changed(self) -> None:
        self.empty.setVisible(self.history.is_empty)
        if self.plot is not None:
            self.plot.changed()

    def minimumSizeHint(self) -> QSize:
        return QSize(240, super().minimumSizeHint().height())
