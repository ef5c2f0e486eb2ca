"""Which slider stop to measure next, and when the best is decided. Knows no engine, no clock.

In: the stops, which of them fit, what is predicted, and one result after the other. Out: the
next stop to visit, and at any moment a :class:`SweepDecision`. Pure; one thread.

The search is told nothing of the curve but that it is mostly one hill: faster with fewer
layers on the CPU until memory runs out, with or without an error. It begins with a few stops
over the whole range, halves the gaps beside the best one, measures again what sticks out, and
then visits the close candidates in turn (A B A B), so that a machine that slowly changes
treats them alike. A visit is a new load, since loads differ more than runs under one load.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moelauncher.core.speed_curve import SpeedCurve, speed_curve

#: Stops whose speeds differ by less are called equal: no one feels it.
EQUAL = 0.015
#: A stop that may still be the best is visited until it is known this well (1 sigma).
_SURE = 0.006
#: A result this far below the line between its neighbours is measured again.
_DENT = 0.05
_FIRST_STOPS = 6
_LEAST_VISITS = 8
#: Visits for each stop of a full sweep that a search may take.
_SHARE = 0.75


@dataclass(frozen=True)
class SweepDecision:
    """What is known. ``best`` is the stop to take: of several equal ones the roomiest.

    ``equal`` holds all stops that are as fast, ``best`` among them, in order. ``rates`` is
    the middle of each measured stop's undisturbed repeats (tok/s); ``noise`` the relative
    spread of one visit. ``decided`` says that more visits would change nothing.
    """

    best: int | None
    equal: tuple[int, ...]
    rates: Mapping[int, float]
    failed: tuple[int, ...]
    noise: float
    decided: bool

    @property
    def is_tie(self) -> bool:
        """Whether several measured stops are equal within the noise."""
        return len(self.equal) > 1


class Sweep:
    """One search over the stops 0..``last`` (expert layers on the CPU)."""

    def __init__(
        self,
        last: int,
        *,
        present: int | None = None,
        fits: Sequence[bool | None] = (),
        predicted: Sequence[float | None] = (),
        same_as: Sequence[int] = (),
        n_repeats: int = 3,
        limit: int | None = None,
    ) -> None:
        """``present`` is the user's own stop: always measured. ``fits`` and ``predicted``
        (tok/s) are by stop, empty where unknown. ``same_as`` names for each stop the one that
        stands for all that are the same placement. ``limit`` bounds the visits.
        """
        self._last = max(last, 0)
        self._same_as = list(same_as) or list(range(self._last + 1))
        self._present = None if present is None else self._same_as[self._clamp(present)]
        self._n_repeats = max(n_repeats, 1)
        allowed = [
            stop
            for stop in range(self._last + 1)
            if self._same_as[stop] == stop and (stop >= len(fits) or fits[stop] is not False)
        ]
        #: Where nothing fits, the one that takes the least is all there is to try.
        self._stops = allowed or [self._same_as[self._last]]
        self._predicted = dict(enumerate(predicted))
        most = max(_LEAST_VISITS, int(_SHARE * (self._last + 1)))
        self._limit = most if limit is None else limit
        self._rates: dict[int, list[float]] = {}
        self._disturbed: dict[int, list[float]] = {}
        self._visits: dict[int, int] = {}
        self._failed: set[int] = set()
        self._last_visit: int | None = None
        self._first = self._first_stops()

    # In

    def add(self, stop: int, rate: float, *, disturbed: bool = False) -> None:
        """One visit's result in tok/s. A disturbed one counts as a visit, not as a speed,
        unless a stop never has another.
        """
        self._visited(stop)
        if not rate > 0 or not math.isfinite(rate):
            return
        if not disturbed:
            self._rates.setdefault(stop, []).append(rate)
            return
        self._disturbed.setdefault(stop, []).append(rate)
        if stop not in self._rates and len(self._disturbed[stop]) >= self._n_repeats:
            self._rates[stop] = list(self._disturbed[stop])

    def fail(self, stop: int) -> None:
        """The stop cannot be run: out of memory, a crash, no answer."""
        self._visited(stop)
        if stop not in self._rates:
            self._failed.add(stop)

    # Out

    @property
    def n_visits(self) -> int:
        """Visits so far, failed ones included."""
        return sum(self._visits.values())

    @property
    def limit(self) -> int:
        """The most visits that this search takes."""
        return self._limit

    def next_stop(self) -> int | None:
        """The stop to visit now; None: decided, or the visits are used up."""
        if self.n_visits >= self._limit:
            return None
        return self._next()

    def decision(self) -> SweepDecision:
        """What is known now."""
        curve = speed_curve(self._rates)
        rates = {stop: statistics.median(rates) for stop, rates in self._rates.items()}
        failed = tuple(sorted(self._failed))
        close = self._close(curve)
        return SweepDecision(
            best=max(close, default=None),
            equal=tuple(close),
            rates=rates,
            failed=failed,
            noise=curve.noise,
            decided=self._next() is None,
        )

    # Inside

    def _clamp(self, stop: int) -> int:
        return min(max(stop, 0), self._last)

    def _visited(self, stop: int) -> None:
        self._visits[stop] = self._visits.get(stop, 0) + 1
        self._last_visit = stop

    def _first_stops(self) -> list[int]:
        """A few over the whole range, the promising end first, and the user's own."""
        stops = self._stops
        if len(stops) <= _FIRST_STOPS:
            chosen = list(stops)
        else:
            step = (len(stops) - 1) / (_FIRST_STOPS - 1)
            chosen = [stops[round(n * step)] for n in range(_FIRST_STOPS)]
        known = [stop for stop in stops if self._predicted.get(stop) is not None]
        if known:
            promising = max(known, key=lambda stop: self._predicted[stop] or 0.0)
            chosen.insert(0, promising)
        if self._present is not None:
            chosen.insert(0, self._present)
        return list(dict.fromkeys(chosen))

    def _next(self) -> int | None:
        for stop in self._first:
            # Below one that ran out of memory there is less still.
            if stop not in self._visits and not any(stop < failed for failed in self._failed):
                return stop
            if stop == self._present and stop not in self._visits:
                return stop
        unheard = [s for s in self._disturbed if s not in self._rates and s not in self._failed]
        if unheard:
            return unheard[0]
        curve = speed_curve(self._rates)
        if not curve.heights:
            # Nothing ran so far: what takes the least memory is the likeliest to.
            untried = [stop for stop in self._stops if stop not in self._visits]
            return untried[-1] if untried else None
        for choose in (self._dent, self._gap, self._rival):
            wish = choose(curve)
            if wish is not None:
                return wish
        return None

    def _close(self, curve: SpeedCurve) -> list[int]:
        """The measured stops that are as fast as the best, in order."""
        heights, doubts = curve.heights, curve.doubts
        if not heights:
            return []
        top = max(heights, key=lambda stop: heights[stop])

        def equal(stop: int) -> bool:
            doubt = math.hypot(doubts[stop], doubts[top])
            return heights[stop] >= heights[top] - min(max(doubt, EQUAL / 2), EQUAL)

        return [stop for stop in sorted(heights) if equal(stop)]

    def _dent(self, curve: SpeedCurve) -> int | None:
        """A stop that was visited once and sticks out downwards: is it so?"""
        stops = sorted(self._rates)
        values = {stop: math.log(statistics.median(self._rates[stop])) for stop in stops}
        for index, stop in enumerate(stops[:-1]):
            if len(self._rates[stop]) > 1:
                continue
            right = stops[index + 1]
            line = values[right]
            if index > 0:
                left = stops[index - 1]
                share = (stop - left) / (right - left)
                line = values[left] + share * (values[right] - values[left])
            if values[stop] < line - _DENT:
                return stop
        return None

    def _gap(self, curve: SpeedCurve) -> int | None:
        """The middle of the more promising gap beside the best stop."""
        heights = curve.heights
        best = max(heights, key=lambda stop: heights[stop])
        tried = sorted(set(self._rates) | self._failed)
        at = tried.index(best)
        below = tried[at - 1] if at > 0 else None
        above = tried[at + 1] if at + 1 < len(tried) else None
        wishes = []
        for near, far in ((below, above), (above, below)):
            inside = self._between(best, near)
            if not inside:
                continue
            gain = self._gain(heights, best, near, far, len(inside))
            if gain > EQUAL / 2:
                wishes.append((gain, inside[len(inside) // 2]))
        return max(wishes)[1] if wishes else None

    def _between(self, best: int, near: int | None) -> list[int]:
        """Allowed stops between the best and its tried neighbour (or the end of the range)."""
        if near is None:
            return []
        low, high = min(best, near), max(best, near)
        return [stop for stop in self._stops if low < stop < high and stop not in self._visits]

    def _gain(
        self,
        heights: Mapping[int, float],
        best: int,
        near: int | None,
        far: int | None,
        n_inside: int,
    ) -> float:
        """How much faster the best stop of a gap may be: the slope on the other side goes on."""
        level = near is not None and near in heights and heights[best] - heights[near] < EQUAL
        if level and n_inside < 3:
            return 0.0
        slope = 0.0
        if far is not None and far in heights:
            slope = max(0.0, (heights[best] - heights[far]) / abs(best - far))
        if near is not None and near in heights:
            # Between two measured stops the way down may also begin late.
            slope = max(slope, (heights[best] - heights[near]) / abs(best - near) / 2)
        elif slope == 0.0:
            slope = EQUAL  # beside a failed stop, with nothing to compare: look
        return slope * n_inside

    def _rival(self, curve: SpeedCurve) -> int | None:
        """The least visited of the stops that may still be the best."""
        heights, doubts = curve.heights, curve.doubts
        top = max(heights, key=lambda stop: heights[stop])

        def may_win(stop: int) -> bool:
            doubt = math.hypot(doubts[stop], doubts[top])
            return heights[stop] + 1.5 * doubt >= heights[top] - EQUAL / 2

        def is_known(stop: int) -> bool:
            n_rates = len(self._rates[stop])
            if n_rates < self._n_repeats:
                # A stop that is only ever disturbed must not hold the search up.
                return self._visits[stop] >= 2 * self._n_repeats
            alone = len(heights) == 1
            return alone or doubts[stop] <= _SURE or n_rates >= 2 * self._n_repeats

        wanted = {stop for stop in heights if may_win(stop)}
        if self._present is not None and self._present in heights:
            wanted.add(self._present)
        open_ = [stop for stop in wanted if not is_known(stop)]
        if not open_:
            return None
        fewest = min(self._visits[stop] for stop in open_)
        turn = [stop for stop in open_ if self._visits[stop] == fewest]
        others = [stop for stop in turn if stop != self._last_visit] or turn
        return max(others, key=lambda stop: heights[stop])
