"""The doctor's pane: verdicts on this machine, what was found, and a report to copy. Not modal."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.verdict import BAD, GOOD, Verdict
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import code_font
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.progress_line import ProgressLine
from moelauncher.gui.library.verdict_list import VerdictList


class DoctorDialog(QDialog):
    """Filled by :meth:`set_result`; :meth:`set_busy` while the doctor looks.

    Signals:
        run_requested(): look (again). Emitted by the button, and at the first showing.
    """

    run_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("doctorDialog")
        self.setWindowTitle(self.tr("Doctor"))
        self.resize(680, 640)
        self._report = ""
        self._asked = False
        self.verdict = plain_label("", "", self)
        self.verdict.setObjectName("doctorVerdict")
        self.verdict.setFont(look.font("title", bold=True))
        self.verdict.setWordWrap(True)
        self.progress = ProgressLine(self)
        self.progress.setObjectName("doctorProgress")
        self.list = VerdictList()
        self.list.setObjectName("doctorVerdicts")
        self.found = QPlainTextEdit(self)
        self.found.setObjectName("doctorFacts")
        self.found.setAccessibleName(self.tr("What was found"))
        self.found.setReadOnly(True)
        self.found.setFont(code_font())
        self.found.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.found.setTabChangesFocus(True)
        column = QVBoxLayout(self)
        margin = look.PANE_MARGIN
        column.setContentsMargins(margin, margin, margin, margin)
        column.setSpacing(look.GRID)
        column.addWidget(self.verdict)
        column.addWidget(self.progress)
        self.parts = self._parts()
        column.addWidget(self.parts, 1)
        column.addLayout(self._buttons())
        self._show_start()

    def set_busy(self, text: str) -> None:
        """``text`` says what is looked at now."""
        self.progress.set_progress(text, None)
        self.again.setEnabled(False)

    def set_result(self, verdicts: Sequence[Verdict], found: str, report: str) -> None:
        """What came out: ``found`` is shown below the verdicts, ``report`` is what Copy gives."""
        self._report = report
        self._rest()
        n_worse = sum(verdict.level != GOOD for verdict in verdicts)
        worst = any(verdict.level == BAD for verdict in verdicts)
        if not n_worse:
            text = self.tr("This machine is set up well.")
        elif n_worse == 1:
            text = self.tr("One thing could be better.")
        else:
            text = self.tr("{n} things could be better.").format(n=n_worse)
        self._say(text, "bad" if worst else "")
        self.list.set_verdicts(verdicts)
        self.list.show()
        self.found.setEnabled(True)
        self.found.setPlainText(found)
        self.copy.setEnabled(True)

    def set_problem(self, text: str) -> None:
        """The doctor himself failed."""
        self._rest()
        self._say(text, "bad")

    # Parts

    def _parts(self) -> QSplitter:
        scroll = QScrollArea(self)
        scroll.setObjectName("doctorScroll")
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self.list)
        lower = QWidget(self)
        column = QVBoxLayout(lower)
        column.setContentsMargins(0, look.GRID, 0, 0)
        column.setSpacing(look.HALF)
        heading = plain_label(self.tr("What was found"), "muted", lower)
        heading.setFont(look.section_font())
        column.addWidget(heading)
        column.addWidget(self.found, 1)
        splitter = QSplitter(Qt.Orientation.Vertical, self)
        splitter.setHandleWidth(1)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(scroll)
        splitter.addWidget(lower)
        splitter.setStretchFactor(0, 1)
        splitter.setStretchFactor(1, 0)
        splitter.setSizes([400, 180])
        return splitter

    def _buttons(self) -> QHBoxLayout:
        self.copy = QPushButton(self.tr("Copy report"), self)
        self.copy.setObjectName("copyDoctorReportButton")
        self.copy.setToolTip(self.tr("All of this as text; your home folder is written as ~"))
        self.copy.clicked.connect(lambda: QApplication.clipboard().setText(self._report))
        self.again = QPushButton(self.tr("Look again"), self)
        self.again.setObjectName("doctorAgainButton")
        self.again.clicked.connect(self.run_requested)
        close = QPushButton(self.tr("Close"), self)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setSpacing(look.GRID)
        row.addWidget(self.copy)
        row.addWidget(self.again)
        row.addStretch(1)
        row.addWidget(close)
        for button in (self.copy, self.again, close):
            button.setAutoDefault(False)
        close.setFocus(Qt.FocusReason.OtherFocusReason)
        return row

    def _show_start(self) -> None:
        self._say(self.tr("Looking at this machine"), "")
        self.copy.setEnabled(False)
        # Two empty boxes would say nothing.
        self.list.hide()
        self.found.setEnabled(False)

    def _say(self, text: str, tone: str) -> None:
        look.set_tone(self.verdict, tone)
        self.verdict.setText(text)

    def _rest(self) -> None:
        self.progress.set_progress("", None)
        self.again.setEnabled(True)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._asked:
            self._asked = True
            self.run_requested.emit()
