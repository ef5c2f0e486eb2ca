"""The Tune dialog: what will be measured, how far it is, the table, and what to take.

In: values by methods. Out: what the user wants, as signals. It decides nothing. GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.speed.levers import MMAP, THREADS, UBATCH, WHICH
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.plain_tip import plain_tip
from moelauncher.gui.controls.quiet_spin_box import QuietSpinBox
from moelauncher.gui.controls.quiet_table import QuietTable
from moelauncher.gui.controls.run_dialog import RunDialog
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.theme import GRID, PANE_MARGIN, font, repolish

_WIDTH, _HEIGHT = 760, 560


class TuneDialog(RunDialog):
    """One sweep, before, while and after it runs; what was measured before Cancel is kept.

    Signals:
        started(int): begin, with so many minutes at most.
        taken: use the best setting.
        compare_wanted: hold its answers against those of the present setting.
    """

    started = Signal(int)
    taken = Signal()
    compare_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Tune"), parent)
        self.setObjectName("tuneDialog")
        self._rows: dict[tuple[int, int], int] = {}
        self._levers: dict[str, QCheckBox] = {}
        self._split_why_not = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, PANE_MARGIN, PANE_MARGIN, PANE_MARGIN)
        column.setSpacing(GRID)
        self.about = SteadyLabel(4, font("body"))
        self.about.setObjectName("tuneAbout")
        column.addWidget(self.about)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        label = plain_label(self.tr("At most"), "muted")
        self.minutes = QuietSpinBox()
        self.minutes.setObjectName("tuneMinutes")
        self.minutes.setAccessibleName(self.tr("Minutes at most"))
        self.minutes.setRange(1, 240)
        self.minutes.setValue(10)
        self.minutes.setFixedWidth(64)
        self.start = QPushButton(self.tr("Start"))
        self.start.setObjectName("tuneStartButton")
        self.start.setProperty("kind", "primary")
        row.addWidget(label)
        row.addWidget(self.minutes)
        row.addWidget(plain_label(self.tr("minutes"), "muted"))
        row.addStretch(1)
        self.split = QCheckBox(self.tr("Compare with a plain layer split"))
        self.split.setObjectName("tuneSplitBox")
        row.addWidget(self.split)
        row.addWidget(self.start)
        column.addLayout(row)
        column.addLayout(self._make_levers())
        column.addWidget(self.progress)
        titles = ["", self.tr("tok/s"), self.tr("Prompt tok/s"), self.tr("VRAM")]
        self.table = QuietTable(
            [*titles, self.tr("Remarks")],
            wide=4,
            figures=(2, 3),
            empty_text=self.tr("Each setting that is measured gets a row here."),
        )
        self.table.setObjectName("tuneTable")
        tips = {
            1: self.tr("Tokens written in a second, ± their spread (so many measurements)"),
            2: self.tr("Tokens of a prompt read in a second"),
        }
        for place, tip in tips.items():
            heading = self.table.horizontalHeaderItem(place)
            if heading is not None:
                heading.setToolTip(tip)
        # Wide enough for a spread, so that nothing moves when the second repeat comes.
        self.table.horizontalHeader().setSectionResizeMode(1, QHeaderView.ResizeMode.Fixed)
        widest = self.table.fontMetrics().horizontalAdvance("888.88 ± 88.88  (88)")
        self.table.setColumnWidth(1, widest + 3 * GRID)
        self.table.setAccessibleName(self.tr("What was measured"))
        column.addWidget(self.table, 1)
        self.verdict = SteadyLabel(3, font("body", bold=True))
        self.verdict.setObjectName("tuneVerdict")
        self.verdict.setAccessibleName(self.tr("What was found"))
        column.addWidget(self.verdict)
        last = QHBoxLayout()
        last.setSpacing(GRID)
        self.cancel.setObjectName("tuneCancelButton")
        self.take = QPushButton(self.tr("Use this setting"))
        self.take.setObjectName("tuneTakeButton")
        self.take.setProperty("kind", "primary")
        self.take.setEnabled(False)
        self.compare = QPushButton(self.tr("Same answers?"))
        self.compare.setObjectName("tuneCompareButton")
        self.compare.setToolTip(
            self.tr("Hold its answers against those of the present setting, token for token")
        )
        self.compare.setEnabled(False)
        last.addWidget(self.compare)
        last.addStretch(1)
        last.addWidget(self.take)
        last.addWidget(self.cancel)
        column.addLayout(last)
        for button in (self.start, self.take, self.compare):
            button.setAutoDefault(False)
        self.start.clicked.connect(lambda: self.started.emit(self.minutes.value()))
        self.take.clicked.connect(self.taken)
        self.compare.clicked.connect(self.compare_wanted)
        self.resize(_WIDTH, _HEIGHT)
        self.set_running(False)

    def _make_levers(self) -> QHBoxLayout:
        """A box for each setting that is tried once the stop is decided."""
        row = QHBoxLayout()
        row.setSpacing(GRID * 2)
        row.addWidget(plain_label(self.tr("Also try"), "muted"))
        texts = {
            THREADS: (self.tr("threads"), self.tr("How many of the processor's threads compute")),
            UBATCH: (
                self.tr("prompt batch (ubatch)"),
                self.tr("How many tokens of a prompt are read at once: faster, and more memory"),
            ),
            MMAP: (
                self.tr("mapped file"),
                self.tr("Whether the model's file is mapped, or copied into memory"),
            ),
            WHICH: (
                self.tr("first or last layers"),
                self.tr("Which layers' experts go to the CPU first"),
            ),
        }
        for lever, (text, tip) in texts.items():
            box = QCheckBox(text)
            box.setObjectName(f"tuneLever-{lever}")
            box.setToolTip(tip)
            self._levers[lever] = box
            row.addWidget(box)
        row.addStretch(1)
        return row

    def set_split(self, why_not: str) -> None:
        """Whether there is a layer split to compare with; ``why_not`` says why there is none."""
        self._split_why_not = why_not
        self.split.setEnabled(not why_not and not self._running)
        self.split.setToolTip(
            plain_tip(
                why_not
                or self.tr(
                    "One row more: whole layers on the GPU, as many as fit, experts not apart. "
                    "So programs place a model that know no experts."
                )
            )
        )

    @property
    def wants_split(self) -> bool:
        """Whether the plain layer split is to be measured too."""
        return self.split.isChecked() and not self._split_why_not

    def levers(self) -> tuple[str, ...]:
        """The levers that are to be tried too."""
        return tuple(lever for lever, box in self._levers.items() if box.isChecked())

    # Values in

    def begin(self, about: str, stop_title: str) -> None:
        """A fresh dialog for one model; ``stop_title`` heads the first column."""
        self.about.set_text(about)
        self.set_verdict("", False)
        self.progress.set_progress("", None)
        self._rows = {}
        self.table.setRowCount(0)
        heading = self.table.horizontalHeaderItem(0)
        if heading is not None:
            heading.setText(stop_title)
        self.set_running(False)

    def set_running(self, running: bool) -> None:
        """Whether a sweep runs."""
        super().set_running(running)
        self.start.setEnabled(not running)
        self.minutes.setEnabled(not running)
        for box in self._levers.values():
            box.setEnabled(not running)
        self.split.setEnabled(not running and not self._split_why_not)

    def set_row(self, key: tuple[int, int], cells: tuple[str, str, str, str, str]) -> None:
        """One setting's row; rows stand in the order of their keys."""
        if key not in self._rows:
            place = sum(1 for other in self._rows if other < key)
            self.table.insertRow(place)
            self._rows = {other: row + (row >= place) for other, row in self._rows.items()} | {
                key: place
            }
        self.table.set_row(self._rows[key], cells)

    def set_verdict(self, text: str, can_take: bool) -> None:
        """What was found."""
        self.verdict.set_text(text)
        self.take.setEnabled(can_take)
        self.compare.setEnabled(can_take)
        # One button at a time is the next thing to do.
        repolish(self.start, "kind", "" if can_take else "primary")
