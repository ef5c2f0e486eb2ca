"""What the live curve shows: rates, placement marks, and the phases in which a prompt was read.

Kept apart from the plot, which is made only after the first paint. GUI thread.
"""

from __future__ import annotations

import math

import numpy as np

from moelauncher.core.token_rate import NAN, RateCurve

WINDOW_S = 180.0
#: Enough for the window at 30 samples a second.
CAPACITY = 5400
MAXIMUM_SHADES = 60


class SpeedHistory:
    """The last minutes. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.curve = RateCurve(CAPACITY)
        self.now_s = 0.0
        self._shades: list[tuple[float, float]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever added."""
        return self.now_s == 0.0

    def add_rate(self, time_s: float, tok_s: float | None) -> None:
        """A sample; None is a gap."""
        self.curve.sample(time_s, NAN if tok_s is None else tok_s)
        self._advance(time_s)

    def mark(self, time_s: float, text: str) -> None:
        """A placement change."""
        self.curve.mark(time_s, text)
        self._advance(time_s)

    def shade(self, start_s: float, end_s: float) -> None:
        """A prompt was read from ``start_s`` to ``end_s``; the same start again moves the end."""
        if self._shades and self._shades[-1][0] == start_s:
            self._shades[-1] = (start_s, end_s)
        else:
            self._shades = [*self._shades[-(MAXIMUM_SHADES - 1) :], (start_s, end_s)]
        self._advance(end_s)

    def shades(self, since_s: float) -> list[tuple[float, float]]:
        """The phases that reach past ``since_s``, cut there."""
        return [(max(start, since_s), end) for start, end in self._shades if end > since_s]

    def rate_at(self, time_s: float) -> float | None:
        """The last sample at or before ``time_s``; None in a gap."""
        times, rates = self.curve.arrays()
        index = int(np.searchsorted(times, time_s, side="right")) - 1
        if index < 0 or math.isnan(rates[index]):
            return None
        return float(rates[index])

    def _advance(self, time_s: float) -> None:
        self.now_s = max(self.now_s, time_s)
