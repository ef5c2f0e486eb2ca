"""Where each message of the chat stands: tops and heights, exact or still estimated.

Geometry alone, no widget: the view says how wide the column is and what must be exact now;
everything else keeps an estimate until an idle slice gets to it. GUI thread only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from moelauncher.gui.chats.message_view import ACTIONS, MessageView

TOP_PX = 20.0
#: The row of actions beneath each message adds to this.
BETWEEN_PX = 8.0


class MessageColumn:
    """The messages, oldest first, and ``tops``: where each one begins."""

    def __init__(self) -> None:
        self.messages: list[MessageView] = []
        self.tops: list[float] = []
        self.width = 0.0

    @property
    def last(self) -> MessageView | None:
        """The newest message."""
        return self.messages[-1] if self.messages else None

    @property
    def height(self) -> float:
        """How tall all of it is, with the room above and below."""
        return self.tops[-1] + self.messages[-1].height + TOP_PX if self.messages else 0.0

    @property
    def exact(self) -> bool:
        """Whether no height is an estimate any more."""
        return all(message.is_laid_out(self.width) for message in self.messages)

    def set_messages(self, messages: Iterable[MessageView]) -> None:
        """Replace all messages."""
        self.messages = list(messages)
        self.tops = [0.0] * len(self.messages)
        self._estimate()

    def add(self, message: MessageView) -> None:
        """Put a message at the end."""
        self.messages.append(message)
        self.tops.append(0.0)
        message.estimate(self.width)
        self.place_from(len(self.messages) - 1)

    def set_width(self, width: float) -> None:
        """The column has another width: every height becomes an estimate."""
        if width != self.width:
            self.width = width
            self._estimate()

    def place_from(self, index: int) -> None:
        """Heights from ``index`` on may have changed: move what is below."""
        for number in range(index, len(self.messages)):
            above = number - 1
            self.tops[number] = (
                TOP_PX
                if number == 0
                else self.tops[above] + self.messages[above].height + BETWEEN_PX
            )

    def index_at(self, y: float) -> int:
        """The message at or above ``y``."""
        return max(0, bisect_right(self.tops, y) - 1)

    def lay_out(self, index: int) -> None:
        """Make one message exact."""
        self.messages[index].lay_out(self.width)
        self.place_from(index)

    def lay_out_all(self) -> None:
        """Make everything exact: for select all, and for the chat as text."""
        for message in self.messages:
            message.lay_out(self.width)
        self.place_from(0)

    def lay_out_end(self, room: float) -> None:
        """Make exact what the last ``room`` pixels show."""
        lowest = len(self.messages)
        while lowest > 0 and room > 0:
            lowest -= 1
            self.messages[lowest].lay_out(self.width)
            room -= self.messages[lowest].height + BETWEEN_PX
        self.place_from(lowest)

    def lay_out_from(self, first: int, room: float) -> None:
        """Make exact what ``room`` pixels from message ``first`` on show."""
        number = first
        while number < len(self.messages) and room > 0:
            self.messages[number].lay_out(self.width)
            room -= self.messages[number].height + BETWEEN_PX
            number += 1
        self.place_from(first)

    def lay_out_while(self, go_on: Callable[[], bool]) -> bool:
        """Make estimates exact, newest first, while ``go_on``; whether any was left to do."""
        changed = None
        for number in range(len(self.messages) - 1, -1, -1):
            if self.messages[number].is_laid_out(self.width):
                continue
            if not go_on():
                break
            self.messages[number].lay_out(self.width)
            changed = number
        if changed is None:
            return False
        self.place_from(changed)
        return True

    def hot_spots(self) -> list[tuple[int, int]]:
        """What Tab reaches, in reading order: (message, hot spot in it).

        Actions of the last two messages only: a long chat would have hundreds, and the
        context menu has them all.
        """
        late = len(self.messages) - 2
        return [
            (number, index)
            for number, message in enumerate(self.messages)
            for index, spot in enumerate(message.hot_spots)
            if not spot.rect.isEmpty() and (number >= late or spot.kind not in ACTIONS)
        ]

    def _estimate(self) -> None:
        for message in self.messages:
            message.estimate(self.width)
        self.place_from(0)
