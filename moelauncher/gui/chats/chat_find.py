"""Places of a text in the messages of a chat: found, marked, gone through.

Only messages whose text holds the words are laid out. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QTextCursor

from moelauncher.gui.chats.message_column import MessageColumn
from moelauncher.gui.chats.message_view import Hit, TextPart

#: More places than anybody goes through; a single letter in a long chat has many.
MOST_HITS = 5000


@dataclass(frozen=True)
class _Place:
    message: int
    part: TextPart
    start: int
    end: int


class ChatFind:
    """The places of one search."""

    def __init__(self, column: MessageColumn) -> None:
        self._column = column
        self._places: list[_Place] = []
        self._text = ""
        self.at = 0

    @property
    def n_hits(self) -> int:
        """How many places there are."""
        return len(self._places)

    def search(self, text: str) -> None:
        """Find ``text``, whatever its case; the last place is the present one."""
        self._unmark()
        self._places = []
        self._text = text
        words = text.casefold()
        for number, message in enumerate(self._column.messages):
            if not words or len(self._places) >= MOST_HITS:
                break
            if words in message.searched_text.casefold():
                self._column.lay_out(number)
                for part in message.searched_parts():
                    self._find_in(number, part, text)
        self.at = max(0, len(self._places) - 1)
        self._mark()

    def again(self) -> None:
        """The messages, or their parts, are others: find the same text in them, and stay."""
        at = self.at
        self.search(self._text)
        self.at = min(at, self.at)
        self._mark()

    def step(self, step: int) -> None:
        """Go to the next place, or back; around at the ends."""
        if self._places:
            self.at = (self.at + step) % len(self._places)
            self._mark()

    def reveal(self) -> int | None:
        """Unfold what the present place is hidden in; the number of that message, which is to be
        laid out and searched :meth:`again` then. None: the place is seen.
        """
        if not self._places:
            return None
        place = self._places[self.at]
        unfolded = self._column.messages[place.message].reveal(place.part)
        return place.message if unfolded else None

    def y(self) -> float | None:
        """Where the present place stands, in the column's coordinates."""
        if not self._places:
            return None
        place = self._places[self.at]
        block = place.part.document.findBlock(place.start)
        rect = place.part.document.documentLayout().blockBoundingRect(block)
        line = block.layout().lineForTextPosition(place.start - block.position())
        inside = line.y() if line.isValid() else 0.0
        return self._column.tops[place.message] + place.part.origin.y() + rect.top() + inside

    def _find_in(self, number: int, part: TextPart, text: str) -> None:
        cursor = QTextCursor(part.document)
        while len(self._places) < MOST_HITS:
            cursor = part.document.find(text, cursor)
            if cursor.isNull():
                return
            place = _Place(number, part, cursor.selectionStart(), cursor.selectionEnd())
            self._places.append(place)

    def _mark(self) -> None:
        hits: dict[int, list[Hit]] = {}
        for index, place in enumerate(self._places):
            hits.setdefault(id(place.part), []).append((place.start, place.end, index == self.at))
        for place in self._places:
            place.part.hits = tuple(hits[id(place.part)])

    def _unmark(self) -> None:
        for place in self._places:
            place.part.hits = ()
