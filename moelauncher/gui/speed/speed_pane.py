"""The Speed pane: the live curve, and the numbers of the reply below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QWidget,
)

from moelauncher.core.ended_import import import_until
from moelauncher.core.errors import Cancelled
from moelauncher.core.speed.measured_rows import Series
from moelauncher.core.speed.measurement import StopSpeed
from moelauncher.core.units import format_rate
from moelauncher.gui.controls.pane import Pane, add_shortcut, plain_label
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.speed.speed_history import SpeedHistory
from moelauncher.gui.speed.speed_views import SpeedView, SpeedViews
from moelauncher.gui.theme import BORDER, GRID, HALF, font, set_tone

if TYPE_CHECKING:
    from moelauncher.gui.speed.setting_plot import SettingPlot
    from moelauncher.gui.speed.speed_plot import SpeedPlot


@dataclass(frozen=True)
class _Shown:
    """What the view by setting shows."""

    speeds: tuple[StopSpeed, ...] = ()
    last: int = 0
    fits: tuple[bool | None, ...] = ()
    here: int | None = None
    predicted: tuple[float | None, ...] = ()
    guessed: bool = False


class SpeedPane(Pane):
    """Keeps the history from the start; the plot itself comes with :meth:`build_plot`.

    Two views: the live curve, and what was measured by setting.

    Signals:
        tune_requested: measure which setting is the fastest.
        menu_wanted(QMenu): this one is for the view by setting; what is measured adds itself.
        results_dropped(list): files of results, as Path, dropped on the pane.
    """

    tune_requested = Signal()
    menu_wanted = Signal(QMenu)
    results_dropped = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        title = self.tr("Speed")
        self.title_label.setText(title)
        self.setAccessibleName(title)
        self.title_row.addStretch(1)
        self.history = SpeedHistory()
        self.plot: SpeedPlot | None = None
        self.settings: SettingPlot | None = None
        self._shown: _Shown = _Shown()
        self._series: tuple[Series, ...] = ()
        self._make_buttons()

        self.views = SpeedViews(SpeedView(self.tr("Live")), SpeedView(self.tr("By setting")))
        self.views.by_setting.caption.setToolTip(self.setting_button.toolTip())
        self.views.both_changed.connect(self._segments.setHidden)
        self.body.addWidget(self.views, 1)

        row = QHBoxLayout()
        row.setSpacing(GRID * 2)
        figure = QWidget()
        figure_row = QHBoxLayout(figure)
        figure_row.setContentsMargins(0, 0, 0, 0)
        figure_row.setSpacing(HALF)
        self.figure = QLabel("–")
        self.figure.setTextFormat(Qt.TextFormat.PlainText)
        self.figure.setFont(font("figure", bold=True, figures=True))
        self.figure.setAccessibleName(self.tr("Speed now"))
        set_tone(self.figure, "muted")
        unit = plain_label(self.tr("tok/s"), "muted")
        unit.setFont(font("small"))
        figure_row.addWidget(self.figure, 0, Qt.AlignmentFlag.AlignBaseline)
        figure_row.addWidget(unit, 0, Qt.AlignmentFlag.AlignBaseline)
        figure_row.addStretch(1)
        widest_figure = self.figure.fontMetrics().horizontalAdvance("88.8")
        figure.setMinimumWidth(widest_figure + HALF + unit.sizeHint().width())
        self.average = SteadyLabel(2, font("small", figures=True))
        self.note = SteadyLabel(2, font("small", figures=True), "muted")
        self.average.setAccessibleName(self.tr("Expected speed, and the average of this reply"))
        self.note.setAccessibleName(self.tr("About the speed"))
        for label in (self.average, self.note):
            label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(figure)
        self._expected, self._average = "", ""
        # Of one width, with or without figures, so that the note beside them never moves.
        widest = max(
            self.average.fontMetrics().horizontalAdvance(text.format(rate="≈ 88.8"))
            for text in (
                self.tr("average {rate}"),
                self.tr("expected {rate}"),
                self.tr("guess {rate}"),
            )
        )
        self.average.setFixedWidth(widest + HALF)
        row.addWidget(self.average)
        row.addWidget(self.note, 1)
        self.body.addLayout(row)
        self.body.addStretch(0)
        self._show_speeds()
        self._changed()

    def _make_buttons(self) -> None:
        group = QButtonGroup(self)
        # Which view to show, where there is room for one only.
        self._segments = QFrame()
        self._segments.setProperty("segments", True)
        frame_row = QHBoxLayout(self._segments)
        frame_row.setContentsMargins(BORDER, BORDER, BORDER, BORDER)
        frame_row.setSpacing(0)
        self.live_button = QPushButton(self.tr("Live"))
        self.live_button.setObjectName("liveViewButton")
        self.setting_button = QPushButton(self.tr("By setting"))
        self.setting_button.setObjectName("settingViewButton")
        for button in (self.live_button, self.setting_button):
            button.setProperty("kind", "segment")
            button.setCheckable(True)
            button.setAutoDefault(False)
            group.addButton(button)
            frame_row.addWidget(button)
        self.title_row.addWidget(self._segments)
        self.live_button.setChecked(True)
        self.setting_button.setToolTip(
            self.tr("What was measured on this machine, by the slider's stops")
        )
        self.setting_button.toggled.connect(self._show_view)
        self.tune_button = QPushButton(self.tr("Tune…"))
        self.tune_button.setObjectName("tuneButton")
        self.tune_button.setAccessibleName(self.tr("Tune: measure which setting is the fastest"))
        self.tune_button.setProperty("kind", "chip")
        self.tune_button.setAutoDefault(False)
        self.tune_button.setEnabled(False)
        self.tune_button.clicked.connect(self.tune_requested)
        add_shortcut(self.tune_button, "T")
        self.title_row.addWidget(self.tune_button)
        self.more_button = QPushButton("⋯")
        self.more_button.setObjectName("speedMenuButton")
        self.more_button.setProperty("kind", "chip")
        self.more_button.setAutoDefault(False)
        self.more_button.setAccessibleName(self.tr("More on speeds"))
        self.more_button.setToolTip(self.tr("Copy, export and import what is shown"))
        self.more_button.clicked.connect(
            lambda: self._open_menu(
                self.more_button.mapToGlobal(QPoint(0, self.more_button.height())),
                self.views.shown,
            )
        )
        self.title_row.addWidget(self.more_button)

    def build_plot(self, ended: Callable[[], bool] = lambda: False) -> None:
        """Make the plots. Call once, after the window's first paint.

        Raises Cancelled once ``ended()`` is true while their library, which is large, is loaded.
        """
        if self.plot is not None:
            return
        with import_until("pyqtgraph", ended):
            from moelauncher.gui.speed.setting_plot import SettingPlot
            from moelauncher.gui.speed.speed_plot import SpeedPlot
        if ended():
            raise Cancelled

        self.plot = SpeedPlot(self.history)
        self.settings = SettingPlot()
        for view, plot in (
            (self.views.live, self.plot),
            (self.views.by_setting, self.settings),
        ):
            plot.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            plot.customContextMenuRequested.connect(
                lambda place, plot=plot, view=view: self._open_menu(
                    plot.mapToGlobal(place), (view,)
                )
            )
            view.set_plot(plot)
        self._show_speeds()

    def set_can_tune(self, able: bool, why_not: str = "") -> None:
        """Whether Tune can be pressed; ``why_not`` is the reason where it cannot."""
        self.tune_button.setEnabled(able)
        self.tune_button.setToolTip(
            why_not or self.tr("Measure which setting is the fastest on this machine")
        )

    def set_speeds(
        self,
        speeds: Sequence[StopSpeed],
        last: int,
        fits: Sequence[bool | None] = (),
        here: int | None = None,
        predicted: Sequence[float | None] = (),
        guessed: bool = False,
    ) -> None:
        """What is measured of the selected model on this machine; see ``SettingPlot``."""
        shown = _Shown(tuple(speeds), last, tuple(fits), here, tuple(predicted), guessed)
        if shown != self._shown:
            self._shown = shown
            self._show_speeds()

    def set_series(self, series: Sequence[Series]) -> None:
        """Speeds of other programs, and of a plain layer split, beside those by setting."""
        self._series = tuple(series)
        self._show_speeds()

    def csv(self) -> str:
        """The live curve as comma-separated values."""
        times, rates = self.history.arrays(-math.inf)
        now_s = self.history.now_s
        rows = [
            f"{time - now_s:.1f},{'' if rate != rate else f'{rate:.3f}'}"
            for time, rate in zip(times, rates, strict=True)
        ]
        return "\n".join(["seconds,tok_s", *rows]) + "\n"

    def _open_menu(self, place: QPoint, views: Sequence[SpeedView]) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_menu(menu, views)
        menu.popup(place)

    def fill_menu(self, menu: QMenu, views: Sequence[SpeedView]) -> None:
        """What can be done with ``views``, each in a menu of its own where there are several."""
        for view in views:
            part = menu.addMenu(view.name) if len(views) > 1 else menu
            plot = self.plot if view is self.views.live else self.settings
            image = part.addAction(self.tr("Copy as image"))
            image.setEnabled(plot is not None)
            if plot is not None:
                image.triggered.connect(
                    lambda _checked, plot=plot: QApplication.clipboard().setPixmap(plot.grab())
                )
            if view is self.views.by_setting:
                self.menu_wanted.emit(part)
                continue
            table = part.addAction(self.tr("Copy as CSV"))
            table.triggered.connect(lambda: QApplication.clipboard().setText(self.csv()))

    def _show_speeds(self) -> None:
        shown = self._shown
        if self.settings is not None:
            self.settings.set_speeds(
                shown.speeds,
                shown.last,
                fits=shown.fits,
                here=shown.here,
                predicted=shown.predicted,
                guessed=shown.guessed,
            )
            self.settings.set_series(self._series)
        expected = any(rate is not None for rate in shown.predicted)
        nothing = self.tr("Nothing is measured yet: press Tune.")
        self.views.by_setting.set_empty("" if shown.speeds or self._series or expected else nothing)

    def _show_view(self, by_setting: bool) -> None:
        self.views.want(self.views.by_setting if by_setting else self.views.live)

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

    def set_traffic(
        self, note: str, tip: str = "", expected: str = "", *, guessed: bool = False
    ) -> None:
        """What a token reads and moves ("0.9 GiB VRAM, ..."), what that means, and the speed to
        expect of it ("≈ 36.9"), ``guessed`` where nothing is known of this machine yet."""
        self.note.set_text(note)
        self.note.setToolTip(tip)
        self.average.setToolTip(tip)
        told = self.tr("guess {rate}") if guessed else self.tr("expected {rate}")
        self._expected = told.format(rate=expected) if expected else ""
        self._show_figures()

    def set_summary(self, rate: float | None, average: float | None = None) -> None:
        """The speed now, and this reply's average."""
        self.figure.setText("–" if rate is None else format_rate(rate).split(" ", maxsplit=1)[0])
        set_tone(self.figure, "muted" if rate is None else "")
        # While nothing is measured, what to expect is the figure that one reads.
        set_tone(self.average, "" if rate is None else "muted")
        self._average = (
            ""
            if average is None
            else self.tr("average {rate}").format(rate=format_rate(average).split(" ")[0])
        )
        self._show_figures()
        if self.plot is not None:
            self.plot.setAccessibleDescription(f"{format_rate(rate)} {self._average}")

    def _show_figures(self) -> None:
        self.average.set_text("\n".join(filter(None, (self._expected, self._average))))

    def _changed(self) -> None:
        live = self.tr("The speed of answers appears here.")
        self.views.live.set_empty(live if self.history.is_empty else "")
        if self.plot is not None:
            self.plot.changed()

    def minimumSizeHint(self) -> QSize:
        return QSize(240, super().minimumSizeHint().height())
