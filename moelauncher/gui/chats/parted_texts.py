"""Two answers side by side, with the place marked from which they part. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QTextEdit, QVBoxLayout, QWidget

from moelauncher.core.speed.same_answers import PromptAnswer, joined
from moelauncher.gui.controls.elided_label import ElidedLabel
from moelauncher.gui.palette import faded
from moelauncher.gui.theme import GRID, HALF, font, theme

#: So visible is what follows the place where the texts part, and the first token there.
_BEHIND, _FIRST = 0.16, 0.45


class _Text(QWidget):
    """A title and a text that can be selected, never read as HTML."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(HALF)
        self.title = ElidedLabel()
        self.title.setFont(font("small", bold=True))
        self.text = QPlainTextEdit()
        self.text.setObjectName(name)
        self.text.setAccessibleName(title)
        self.text.setReadOnly(True)
        self.text.setFont(font("small"))
        column.addWidget(self.title)
        column.addWidget(self.text, 1)
        self._parts: tuple[str, str, str] = ("", "", "")
        theme().changed.connect(self._mark)

    def show_parts(self, same: str, first: str, behind: str) -> None:
        """``same`` is in both texts, ``first`` the token at which this one goes its own way."""
        self._parts = (same, first, behind)
        self.text.setPlainText(same + first + behind)
        self._mark()
        cursor = self.text.textCursor()
        cursor.setPosition(_length(same))
        self.text.setTextCursor(cursor)
        self.text.ensureCursorVisible()

    def _mark(self) -> None:
        same, first, behind = self._parts
        start, middle = _length(same), _length(same + first)
        end = _length(same + first + behind)
        color = theme().colors.mark
        self.text.setExtraSelections(
            [
                self._selection(start, middle, faded(color, _FIRST)),
                self._selection(middle, end, faded(color, _BEHIND)),
            ]
        )

    def _selection(self, start: int, end: int, color: QColor) -> QTextEdit.ExtraSelection:
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.text.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        selection.cursor = cursor
        shape = QTextCharFormat()
        shape.setBackground(color)
        selection.format = shape
        return selection


class PartedTexts(QWidget):
    """The reference's answer at the left, the other's at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID)
        self.left = _Text("answersFirstText", self.tr("The first setting's answer"))
        self.right = _Text("answersOtherText", self.tr("The other setting's answer"))
        row.addWidget(self.left, 1)
        row.addWidget(self.right, 1)

    def set_titles(self, left: str, right: str) -> None:
        """What the two settings are."""
        self.left.title.set_text(left)
        self.right.title.set_text(right)

    def set_answer(self, answer: PromptAnswer | None) -> None:
        """Show an answer; None: nothing."""
        if answer is None:
            self.left.show_parts("", "", "")
            self.right.show_parts("", "", "")
            return
        at = len(answer.tokens) if answer.parted_at is None else answer.parted_at
        for side, pieces in ((self.left, answer.tokens), (self.right, answer.other)):
            side.show_parts(*_parts(pieces, at))


def _parts(pieces: Sequence[str], at: int) -> tuple[str, str, str]:
    first = at
    # A token may have no text of its own (half a character): the next that has some is marked.
    while first < len(pieces) and not joined(pieces[at : first + 1]):
        first += 1
    return joined(pieces[:at]), joined(pieces[at : first + 1]), joined(pieces[first + 1 :])


def _length(text: str) -> int:
    """As Qt counts: UTF-16 units, and a line break of two characters once."""
    return len(text.replace("\r\n", "\n").encode("utf-16-le")) // 2
