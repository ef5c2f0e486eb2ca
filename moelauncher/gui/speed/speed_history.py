"""What the live curve shows: rates, placement marks, and the phases in which a prompt was read.

Kept apart from the plot, which is made only after the first paint. GUI thread.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING

from moelauncher.core.speed.token_rate import NAN, RateCurve, RateMark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The curve starts with the shortest of these and takes a longer one as it grows.
WINDOWS_S = (30.0, 60.0, 180.0)
LONGEST_S = WINDOWS_S[-1]
#: Closer samples would share a pixel, and cost a wide pen dearly at every repaint.
SPACING_S = 0.5
#: Enough for the window, gaps included.
CAPACITY = 720
MAXIMUM_SHADES = 60


class SpeedHistory:
    """The last minutes. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._curve = RateCurve(CAPACITY)
        self._stored_s = -math.inf
        #: The newest sample, while it is too close to the last one that was kept.
        self._tip: tuple[float, float] | None = None
        self.now_s = 0.0
        self._began_s: float | None = None
        self._shades: list[tuple[float, float]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever added."""
        return self._began_s is None

    @property
    def window_s(self) -> float:
        """How far back to show: far enough for all there is, up to the longest window."""
        span_s = 0.0 if self._began_s is None else self.now_s - self._began_s
        return next((window for window in WINDOWS_S if span_s <= window), LONGEST_S)

    def add_rate(self, time_s: float, tok_s: float | None) -> None:
        """A sample; None is a gap."""
        if tok_s is None:
            self._keep_tip()
            self._curve.sample(time_s, NAN)
            self._stored_s = -math.inf
        elif time_s - self._stored_s >= SPACING_S:
            self._curve.sample(time_s, tok_s)
            self._stored_s = time_s
            self._tip = None
        else:
            self._tip = (time_s, tok_s)
        self._advance(time_s)

    def _keep_tip(self) -> None:
        if self._tip is not None:
            self._curve.sample(*self._tip)
            self._tip = None

    def arrays(self, since_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and rates from ``since_s`` on, oldest first, NaN in gaps."""
        import numpy as np

        times, rates = self._curve.arrays()
        first = int(np.searchsorted(times, since_s))
        times, rates = times[first:], rates[first:]
        if self._tip is not None:
            times, rates = np.append(times, self._tip[0]), np.append(rates, self._tip[1])
        return times, rates

    def marks(self, since_s: float) -> tuple[RateMark, ...]:
        """The placement changes from ``since_s`` on."""
        return tuple(mark for mark in self._curve.marks() if mark.time_s >= since_s)

    def mark(self, time_s: float, text: str) -> None:
        """A placement change."""
        self._curve.mark(time_s, text)
        self._advance(time_s)

    def shade(self, start_s: float, end_s: float) -> None:
        """A prompt was read from ``start_s`` to ``end_s``; the same start again moves the end."""
        if self._shades and self._shades[-1][0] == start_s:
            self._shades[-1] = (start_s, end_s)
        else:
            self._shades = [*self._shades[-(MAXIMUM_SHADES - 1) :], (start_s, end_s)]
        self._advance(start_s)
        self._advance(end_s)

    def shades(self, since_s: float) -> list[tuple[float, float]]:
        """The phases that reach past ``since_s``, cut there."""
        return [(max(start, since_s), end) for start, end in self._shades if end > since_s]

    def rate_at(self, time_s: float) -> float | None:
        """The last sample at or before ``time_s``; None in a gap."""
        times, rates = self.arrays(-math.inf)
        index = bisect_right(times, time_s) - 1
        if index < 0 or math.isnan(rates[index]):
            return None
        return float(rates[index])

    def _advance(self, time_s: float) -> None:
        if self._began_s is None:
            self._began_s = time_s
        self.now_s = max(self.now_s, time_s)
