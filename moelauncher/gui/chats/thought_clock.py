"""How long a reply thought before its answer began. GUI thread only."""

from __future__ import annotations

from collections.abc import Callable

from moelauncher.core.chats.turn import Turn


class ThoughtClock:
    """One reply after the other; ``clock`` in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._from_s: float | None = None
        self._before_s: float | None = None  # what was thought before the reply was cut
        self._took_s: float | None = None
        self._written = False  # whether the answer has begun

    def begin(self, turn: Turn | None = None) -> None:
        """A reply begins; with ``turn``, one that was cut goes on."""
        self._from_s = None
        self._before_s = self._took_s = turn.thought_s if turn is not None else None
        self._written = turn is not None and bool(turn.text)

    def hear(self, text: str, reasoning: str) -> float | None:
        """What the model wrote in one frame; seconds of thinking by now, None without any."""
        if reasoning and self._from_s is None:
            self._from_s = self._clock()
        self._look()
        self._written = self._written or bool(text)
        return self._took_s

    def end(self) -> float | None:
        """The reply is over; seconds, None where it did not think."""
        self._look()
        return self._took_s

    def _look(self) -> None:
        if self._from_s is not None and not self._written:
            self._took_s = (self._before_s or 0.0) + self._clock() - self._from_s
