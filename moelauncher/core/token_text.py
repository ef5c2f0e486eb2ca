"""From the bytes of single tokens to text that may be shown.

In: token pieces (bytes, cut anywhere), stop strings. Out: text in which no character is
ever half and no stop string ever appears. Pure; one instance a reply, one thread.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Utf8Joiner:
    """Joins byte pieces to text; bytes of an unfinished character wait for the rest.

    What is unfinished at the end is never told: half a character says nothing.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, piece: bytes) -> str:
        """The characters that ``piece`` completes; bytes that can never be UTF-8 give U+FFFD."""
        return self._decoder.decode(piece)


class StopStrings:
    """Holds text back while it may be the beginning of a stop string.

    ``hit`` turns true when one was found; the text before it has been given out then, and
    the stop string and what follows it never are.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.hit = False

    def feed(self, text: str) -> str:
        """The part of all text so far that is safe to show now."""
        if not self._stops:
            return text
        if self.hit:
            return ""
        self._held += text
        found = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.hit = True
            safe, self._held = self._held[: min(found)], ""
            return safe
        keep = max(_overlap(self._held, stop) for stop in self._stops)
        cut = len(self._held) - keep
        safe, self._held = self._held[:cut], self._held[cut:]
        return safe

    def flush(self) -> str:
        """What was held back: at the end it is no stop string after all."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that is a beginning of ``stop``, not all of it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
