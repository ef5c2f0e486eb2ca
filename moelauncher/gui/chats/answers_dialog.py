"""Same answers?: two settings, a verdict, a table of prompts, and where two texts part.

In: values by methods. Out: what the user wants, as signals. It decides nothing. GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.program.settings import KV_TYPES
from moelauncher.core.speed.same_answers import (
    PromptAnswer,
    SameAnswers,
    Verdict,
    format_kl,
    scale_text,
)
from moelauncher.gui.chats.parted_texts import PartedTexts
from moelauncher.gui.controls.combo_box import ChevronComboBox
from moelauncher.gui.controls.elided_label import ElidedLabel
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.quiet_spin_box import QuietSpinBox
from moelauncher.gui.controls.quiet_table import QuietTable
from moelauncher.gui.controls.run_dialog import RunDialog
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.theme import CONTROL_HEIGHT, GRID, PANE_MARGIN, font, set_tone

_WIDTH, _HEIGHT = 820, 680
_TABLE_HEIGHT = 190
_FLASH: tuple[bool | None, ...] = (None, True, False)


class AnswersDialog(RunDialog):
    """One check, before, while and after it runs.

    Signals:
        started: begin, with what is chosen.
    """

    started = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Same answers?"), parent)
        self.setObjectName("answersDialog")
        self._answers: tuple[PromptAnswer, ...] = ()
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, PANE_MARGIN, PANE_MARGIN, PANE_MARGIN)
        column.setSpacing(GRID)
        about = SteadyLabel(2, font("body"))
        about.set_text(
            self.tr(
                "Asks the model a few fixed questions under two settings and holds the answers "
                "against each other, token for token. What is loaded is unloaded first and comes "
                "back afterwards."
            )
        )
        column.addWidget(about)
        column.addLayout(self._make_settings())
        column.addWidget(self.progress)
        self.verdict = SteadyLabel(2, font("body", bold=True))
        self.verdict.setObjectName("answersVerdict")
        self.verdict.setAccessibleName(self.tr("What was found"))
        column.addWidget(self.verdict)
        column.addWidget(self._make_results(), 1)
        self.scale = plain_label(scale_text(), "muted")
        self.scale.setFont(font("small", figures=True))
        self.scale.setWordWrap(True)
        column.addWidget(self.scale)
        column.addLayout(self._make_foot())
        self.resize(_WIDTH, _HEIGHT)
        self.set_running(False)

    def _make_settings(self) -> QHBoxLayout:
        self.reference = ElidedLabel()
        self.reference.setObjectName("answersReference")
        self.kv = ChevronComboBox()
        self.kv.setObjectName("answersKvCombo")
        self.kv.setAccessibleName(self.tr("KV type of the other setting"))
        self.kv.addItems(KV_TYPES)
        self.flash = ChevronComboBox()
        self.flash.setObjectName("answersFlashCombo")
        self.flash.setAccessibleName(self.tr("Flash attention of the other setting"))
        self.flash.addItems([self.tr("as llama.cpp chooses"), self.tr("on"), self.tr("off")])
        self.layers = QuietSpinBox()
        self.layers.setObjectName("answersLayers")
        self.layers.setAccessibleName(self.tr("Expert layers on the CPU in the other setting"))
        self.layers.setFixedWidth(64)
        self._layers_label = plain_label(self.tr("Expert layers on the CPU"), "muted")
        other = QHBoxLayout()
        other.setSpacing(GRID)
        for label, control in (
            (plain_label(self.tr("KV"), "muted"), self.kv),
            (plain_label(self.tr("Flash attention"), "muted"), self.flash),
            (self._layers_label, self.layers),
        ):
            other.addWidget(label)
            other.addWidget(control)
        other.addStretch(1)
        form = QFormLayout()
        form.setHorizontalSpacing(2 * GRID)
        form.setVerticalSpacing(GRID)
        form.addRow(plain_label(self.tr("Reference"), "muted"), self.reference)
        against = plain_label(self.tr("Against"), "muted")
        # As tall as the fields beside it, so that all texts stand on one line.
        against.setFixedHeight(CONTROL_HEIGHT)
        form.addRow(against, other)
        self.start = QPushButton(self.tr("Compare"))
        self.start.setObjectName("answersStartButton")
        self.start.setProperty("kind", "primary")
        row = QHBoxLayout()
        row.addLayout(form, 1)
        row.addWidget(self.start, 0, Qt.AlignmentFlag.AlignBottom)
        return row

    def _make_results(self) -> QWidget:
        titles = [self.tr("Question"), self.tr("Texts"), self.tr("Mean KL"), self.tr("Noise")]
        self.table = QuietTable(
            titles,
            wide=0,
            figures=(2, 3),
            selectable=True,
            empty_text=self.tr("Each question gets a row here; below it the two answers."),
        )
        self.table.setObjectName("answersTable")
        self.table.setAccessibleName(self.tr("Each question's answers"))
        header = self.table.horizontalHeaderItem(2)
        noise = self.table.horizontalHeaderItem(3)
        if header is not None and noise is not None:
            header.setToolTip(
                self.tr("How far the next token's distributions lie apart, behind the same text")
            )
            noise.setToolTip(self.tr("The same for another placement alone, measured first"))
        self.table.setMinimumHeight(_TABLE_HEIGHT)
        self.table.itemSelectionChanged.connect(self._show_chosen)
        self.texts = PartedTexts()
        results = QSplitter(Qt.Orientation.Vertical)
        results.setChildrenCollapsible(False)
        # Both have frames of their own: a line between them would be a third.
        results.setProperty("between", "frames")
        results.setHandleWidth(GRID)
        results.addWidget(self.table)
        results.addWidget(self.texts)
        results.setStretchFactor(0, 0)
        results.setStretchFactor(1, 1)
        return results

    def _make_foot(self) -> QHBoxLayout:
        self.cancel.setObjectName("answersCancelButton")
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self.cancel)
        self.start.setAutoDefault(False)
        self.start.clicked.connect(self.started)
        return foot

    # Values in

    def begin(
        self, reference: str, kv_type: str, flash: bool | None, layers: tuple[int, int] | None
    ) -> None:
        """A fresh dialog: the reference in words, the other setting to begin with; ``layers``
        is (chosen, last), None where none can be moved."""
        self.reference.set_text(reference)
        self.kv.setCurrentText(kv_type)
        self.flash.setCurrentIndex(_FLASH.index(flash))
        for widget in (self.layers, self._layers_label):
            widget.setVisible(layers is not None)
        if layers is not None:
            self.layers.setRange(0, layers[1])
            self.layers.setValue(layers[0])
        self.set_result(None, None, "", "")
        self.set_progress("", None)
        self.set_running(False)

    @property
    def chosen(self) -> tuple[str, bool | None, int]:
        """KV type, flash attention and expert layers of the other setting."""
        return self.kv.currentText(), _FLASH[self.flash.currentIndex()], self.layers.value()

    def set_running(self, running: bool) -> None:
        """Whether a check runs."""
        super().set_running(running)
        for control in (self.start, self.kv, self.flash, self.layers):
            control.setEnabled(not running)

    def set_problem(self, text: str) -> None:
        """Why there is no result."""
        set_tone(self.verdict, "bad")
        self.verdict.set_text(text)

    def set_result(
        self, found: SameAnswers | None, verdict: Verdict | None, left: str, right: str
    ) -> None:
        """What was found; ``left`` and ``right`` name the two settings."""
        tones = {"same": "good", "noise": "good", "slight": "warn", "differs": "bad"}
        set_tone(self.verdict, tones[verdict.level] if verdict else "")
        self.verdict.set_text(verdict.text if verdict else "")
        self.texts.set_titles(left, right)
        self.texts.set_answer(None)
        self._answers = found.change.answers if found else ()
        self.table.clearSelection()
        self.table.setRowCount(len(self._answers))
        quiet: Sequence[PromptAnswer | None] = [None] * len(self._answers)
        if found is not None and found.noise is not None:
            quiet = found.noise.answers
        for row, (answer, noise) in enumerate(zip(self._answers, quiet, strict=True)):
            self.table.set_row(row, self._cells(answer, noise))
        if self._answers:
            parted = [row for row, answer in enumerate(self._answers) if not answer.same]
            self.table.selectRow(parted[0] if parted else 0)

    def _cells(self, answer: PromptAnswer, noise: PromptAnswer | None) -> tuple[str, ...]:
        texts = self.tr("the same")
        if answer.parted_at is not None:
            texts = self.tr("part at token {n}").format(n=answer.parted_at + 1)
        kl = "–" if noise is None else format_kl(noise.mean)
        return answer.prompt, texts, format_kl(answer.mean), kl

    # Inside

    def _show_chosen(self) -> None:
        rows = {index.row() for index in self.table.selectedIndexes()}
        row = min(rows, default=-1)
        self.texts.set_answer(self._answers[row] if 0 <= row < len(self._answers) else None)
