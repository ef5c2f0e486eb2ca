"""What is selected in the chat: a stretch that may run over parts and messages.

Pure bookkeeping over the messages' documents; the view moves its ends. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtGui import QTextCursor

from moelauncher.gui.chats.message_view import MessageView


@dataclass(frozen=True, order=True)
class TextPlace:
    """A place in the chat's text: message, part in it, position in the part's document."""

    message: int
    part: int
    position: int


class ChatSelection:
    """From ``anchor`` (where the selection began) to ``head`` (where it was dragged to)."""

    def __init__(self) -> None:
        self.anchor: TextPlace | None = None
        self.head: TextPlace | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is selected."""
        return self.anchor is None or self.head is None or self.anchor == self.head

    def clear(self) -> None:
        """Select nothing."""
        self.anchor = self.head = None

    def set(self, anchor: TextPlace | None, head: TextPlace | None) -> None:
        """Select from ``anchor`` to ``head``."""
        self.anchor, self.head = anchor, head

    def span(
        self, messages: Sequence[MessageView], message: int, part: int
    ) -> tuple[int, int] | None:
        """The selected positions within one part, or None."""
        if self.anchor is None or self.head is None or self.anchor == self.head:
            return None
        low, high = sorted((self.anchor, self.head))
        here = (message, part)
        if here < (low.message, low.part) or here > (high.message, high.part):
            return None
        view = messages[message].parts[part]
        if not view.selectable:
            return None
        end = view.document.characterCount() - 1
        start = low.position if here == (low.message, low.part) else 0
        stop = high.position if here == (high.message, high.part) else end
        return min(start, end), min(stop, end)

    def text(self, messages: Sequence[MessageView]) -> str:
        """The selected text: parts on lines of their own, messages an empty line apart."""
        pieces: list[str] = []
        for number, message in enumerate(messages):
            texts: list[str] = []
            for index, part in enumerate(message.parts):
                span = self.span(messages, number, index)
                if span is not None and span[0] < span[1]:
                    cursor = QTextCursor(part.document)
                    cursor.setPosition(span[0])
                    cursor.setPosition(span[1], QTextCursor.MoveMode.KeepAnchor)
                    texts.append(cursor.selection().toPlainText())
            if texts:
                pieces.append("\n".join(texts))
        return "\n\n".join(pieces)
