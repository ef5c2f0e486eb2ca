"""Verdicts under each other: a mark, what it is about, what was found, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict
from moelauncher.gui import theme as look
from moelauncher.gui.controls.pane import plain_label

#: A shape as well as a colour, and the tone that gives the colour.
_MARKS = {GOOD: ("✓", "good"), WARNING: ("!", "warn"), BAD: ("✕", "bad")}


class VerdictList(QWidget):
    """:meth:`set_verdicts` fills it anew."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._names = {
            GOOD: self.tr("good"),
            WARNING: self.tr("could be better"),
            BAD: self.tr("bad"),
        }
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(look.GRID + look.HALF)
        self._column.addStretch(1)

    def set_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """The worst first, else in their order."""
        while self._column.count() > 1:
            item = self._column.takeAt(0)
            if item is not None and (widget := item.widget()) is not None:
                widget.setParent(None)
                widget.deleteLater()
        order = {BAD: 0, WARNING: 1, GOOD: 2}
        for at, verdict in enumerate(sorted(verdicts, key=lambda one: order[one.level])):
            self._column.insertWidget(at, self._row(verdict))

    def _row(self, verdict: Verdict) -> QWidget:
        row = QWidget(self)
        text, tone = _MARKS[verdict.level]
        mark = plain_label(text, tone, row)
        mark.setFont(look.font("body", bold=True))
        mark.setFixedWidth(look.PANE_MARGIN)
        mark.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        mark.setAccessibleName(self._names[verdict.level])
        subject = _line(verdict.subject, "", row)
        subject.setFont(look.font("body", bold=True))
        words = QVBoxLayout()
        words.setSpacing(look.HALF // 2)
        words.addWidget(subject)
        words.addWidget(_line(verdict.text, "", row))
        if verdict.advice:
            words.addWidget(_line(verdict.advice, "muted", row))
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(look.GRID)
        line.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(words, 1)
        return row


def _line(text: str, tone: str, parent: QWidget) -> QLabel:
    line = plain_label(text, tone, parent)
    line.setWordWrap(True)
    line.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return line
