"""Decode speed over time, for the live curve and the status line.

In: the time of each token. Out: tok/s over a sliding window, and a curve sampled by the
painter's clock, with NaN where nothing was generated (a gap, not a zero). One thread.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAN = math.nan


class TokenRate:
    """Tokens a second over the last ``window_s``; a fixed ring, so tokens allocate nothing."""

    def __init__(self, window_s: float = 2.0, capacity: int = 4096) -> None:
        self._window_s = window_s
        self._times = array("d", [0.0]) * capacity
        self._next = 0  # where the next time goes
        self._n_held = 0
        self._n_reply = 0
        self._first_s = NAN
        self._last_s = NAN

    def begin(self) -> None:
        """A new reply: the time before its first token is not decode time."""
        self._n_held = 0
        self._n_reply = 0
        self._first_s = self._last_s = NAN

    def add(self, time_s: float) -> None:
        """A token came at ``time_s`` (monotonic)."""
        self._times[self._next] = time_s
        self._next = (self._next + 1) % len(self._times)
        self._n_held = min(self._n_held + 1, len(self._times))
        if self._n_reply == 0:
            self._first_s = time_s
        self._n_reply += 1
        self._last_s = time_s

    def rate(self, now_s: float) -> float:
        """tok/s over the window that ends at ``now_s``; NaN with less than two tokens in it.

        A model slower than a token a window keeps the rate of its last two tokens until
        three times that gap has passed.
        """
        oldest_s = now_s - self._window_s
        n = 0
        first_s = NAN
        while n < self._n_held:
            time_s = self._times[(self._next - 1 - n) % len(self._times)]
            if time_s < oldest_s:
                break
            first_s = time_s
            n += 1
        if n >= 2 and self._last_s > first_s:
            return (n - 1) / (self._last_s - first_s)
        if self._n_held >= 2:
            before_s = self._times[(self._next - 2) % len(self._times)]
            gap_s = self._last_s - before_s
            if gap_s > 0 and now_s - self._last_s < 3 * gap_s and gap_s >= self._window_s / 2:
                return 1 / gap_s
        return NAN

    def average(self) -> float:
        """tok/s of the whole reply so far: tokens after the first over their time; or NaN."""
        if self._n_reply < 2 or not self._last_s > self._first_s:
            return NAN
        return (self._n_reply - 1) / (self._last_s - self._first_s)


@dataclass(frozen=True)
class RateMark:
    """A placement change on the curve, as "30 > 24"."""

    time_s: float
    text: str


class RateCurve:
    """The curve itself: the newest ``capacity`` samples, oldest first, and the marks on it."""

    def __init__(self, capacity: int = 1200) -> None:
        self._capacity = capacity
        # Twice the room: the newest samples are always one unbroken slice, never joined.
        self._times = array("d", [0.0]) * (2 * capacity)
        self._rates = array("d", [NAN]) * (2 * capacity)
        self._end = 0
        self._n_held = 0
        self._marks: deque[RateMark] = deque(maxlen=64)

    def sample(self, now_s: float, rate: float) -> None:
        """Add the rate at ``now_s``; NaN is a gap. Several gaps in a row are kept as two."""
        if math.isnan(rate) and self._n_held >= 2:
            last, before = self._rates[self._end - 1], self._rates[self._end - 2]
            if math.isnan(last) and math.isnan(before):
                self._times[self._end - 1] = now_s
                return
        if self._end == len(self._times):
            keep = self._capacity - 1
            self._times[:keep] = self._times[self._end - keep :]
            self._rates[:keep] = self._rates[self._end - keep :]
            self._end = keep
        self._times[self._end] = now_s
        self._rates[self._end] = rate
        self._end += 1
        self._n_held = min(self._n_held + 1, self._capacity)

    def mark(self, now_s: float, text: str) -> None:
        """Note a placement change."""
        self._marks.append(RateMark(now_s, text))

    def clear(self) -> None:
        """Forget samples and marks."""
        self._end = self._n_held = 0
        self._marks.clear()

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and rates, oldest first: views that hold until the next :meth:`sample`."""
        # Here and not above: the plot has it by then, and the first paint needs none of it.
        import numpy as np

        held = slice(self._end - self._n_held, self._end)
        return np.frombuffer(self._times)[held], np.frombuffer(self._rates)[held]

    def marks(self) -> tuple[RateMark, ...]:
        """The marks on the part of the curve that is still there."""
        if self._n_held < self._capacity:  # nothing was forgotten yet
            return tuple(self._marks)
        oldest_s = self._times[self._end - self._n_held]
        return tuple(mark for mark in self._marks if mark.time_s >= oldest_s)
