"""Which slider stop to measure next, and when the best is decided. Knows no engine, no clock.

In: the stops, which of them fit, what is predicted, and one result after the other. Out: the
next stop to visit, and at any moment a :class:`SweepDecision`. Pure; one thread; some
milliseconds a step. A recorded sweep is played with
:func:`moelauncher.core.speed.played_sweep.play`.

The search begins with a few stops over the whole range. From then on it knows a crowd of
curves that go with what was seen (:mod:`moelauncher.core.speed.speed_curves`), and asks of each
stop: were it visited now, how much better could I choose afterwards? The most telling stop is
visited, never the same twice in a row while another would do (A B A B), so that a machine that
slowly changes treats all alike. A visit is a new load, since loads differ more than runs
under one load.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from moelauncher.core.speed.speed_curves import USUAL_NOISE, CurveCrowd, summed_up
from moelauncher.core.speed.sweep_beliefs import SweepBeliefs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How sure it has to be that the choice is good.
_SURE_TO_END = 0.99
#: A result this far below the line between its neighbours is measured again.
_DENT = 0.05
_MATTERS = 0.15
#: Below one that is so many times slower than the best nothing is looked for.
_FAR_BEHIND = 2.0
_FIRST_STOPS = 6
_FIRST_ORDER = (5, 0, 3, 1, 4, 2)
#: Of a handful of stops fewer do not find the best, though it is more than their share.
_LEAST_VISITS = 8
#: Visits for each stop of a full sweep that a search may take.
_SHARE = 0.75
#: That memory runs out below all stops that ran: unknown, and where the forecast says it fits.
_WALL_LIKELY, _WALL_UNLIKELY = 0.5, 0.1


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
    #: The number of the setting to take, where levers were tried (``best`` is its stop then).
    setting: int | None = None
    #: What the levers did, a sentence each.
    lever_notes: tuple[str, ...] = ()
    #: The middle of each stop's prompt speeds (tok/s), where they were measured.
    prompt_rates: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_tie(self) -> bool:
        """Whether several measured stops are equal within the noise."""
        return len(self.equal) > 1


class Search(Protocol):
    """What runs a sweep needs to know of a search."""

    @property
    def n_visits(self) -> int:
        """Visits so far, failed ones included."""

    @property
    def limit(self) -> int:
        """The most visits that this search takes."""

    def next_stop(self) -> int | None:
        """The setting to visit now; None: decided, or the visits are used up."""

    def add(
        self,
        stop: int,
        rate: float,
        *,
        disturbed: bool = False,
        prompt_rate: float | None = None,
    ) -> None:
        """One visit's result in tok/s."""

    def fail(self, stop: int) -> None:
        """The setting cannot be run."""

    def decision(self) -> SweepDecision:
        """What is known now."""


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
        self._wall = _WALL_UNLIKELY if fits and None not in fits else _WALL_LIKELY
        self._predicted = dict(enumerate(predicted))
        most = max(_LEAST_VISITS, int(_SHARE * (self._last + 1)))
        self._limit = most if limit is None else limit
        self._rates: dict[int, list[float]] = {}
        self._disturbed: dict[int, list[float]] = {}
        self._prompts: dict[int, list[float]] = {}
        self._visits: dict[int, int] = {}
        self._failed: set[int] = set()
        self._last_visit: int | None = None
        self._first = self._first_stops()
        self._crowd: CurveCrowd | None = None
        self._thought: tuple[int, SweepBeliefs | None] = (-1, None)

    # In

    def add(
        self,
        stop: int,
        rate: float,
        *,
        disturbed: bool = False,
        prompt_rate: float | None = None,
    ) -> None:
        """One visit's result in tok/s. A disturbed one counts as a visit, not as a speed,
        unless a stop never has another. Stops are not judged by ``prompt_rate``.
        """
        self._visited(stop)
        if prompt_rate is not None and prompt_rate > 0 and not disturbed:
            self._prompts.setdefault(stop, []).append(prompt_rate)
        if not rate > 0 or not math.isfinite(rate):
            return
        if not disturbed:
            self._rates.setdefault(stop, []).append(rate)
            self._failed.discard(stop)
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
        beliefs = self._beliefs()
        equal = () if beliefs is None else beliefs.equal
        return SweepDecision(
            best=None if beliefs is None else beliefs.best,
            equal=equal,
            rates={stop: statistics.median(rates) for stop, rates in self._rates.items()},
            failed=tuple(sorted(self._failed)),
            noise=USUAL_NOISE if beliefs is None else beliefs.noise,
            decided=self._next() is None,
            prompt_rates={stop: statistics.median(found) for stop, found in self._prompts.items()},
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
            # The ends first, then the middle: where memory runs out, half of the rest is spared.
            chosen = [stops[round(n * step)] for n in _FIRST_ORDER]
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
        beliefs = self._beliefs()
        if beliefs is None:
            # Nothing ran so far: what takes the least memory is the likeliest to.
            untried = [stop for stop in self._stops if stop not in self._visits]
            return untried[-1] if untried else None
        sure = beliefs.sure >= _SURE_TO_END
        late = sure or 2 * self.n_visits >= self._limit
        for wish in (
            self._dent(beliefs),
            self._edge(beliefs, beside=True) if late else None,
            self._unseen(beliefs) if late else None,
            self._edge(beliefs) if late else None,
            self._wall_below() if late else None,
        ):
            if wish is not None:
                return wish
        return self._repeat(beliefs) if sure else self._telling(beliefs)

    def _repeat(self, beliefs: SweepBeliefs) -> int | None:
        """Of what is decided: the least visited that has not its repeats yet."""
        wanted = dict.fromkeys(beliefs.equal, self._n_repeats)
        # One disturbed visit would make these look worse than they are, and nothing else tells.
        for stop in (self._present, self._stops[-1]):
            if stop in self._rates:
                wanted.setdefault(stop, min(2, self._n_repeats))
        open_ = [
            stop
            for stop, count in wanted.items()
            # A stop that is only ever disturbed must not hold the search up.
            if len(self._rates[stop]) < count and self._visits[stop] < 2 * count
        ]
        if not open_:
            return None
        others = [stop for stop in open_ if stop != self._last_visit] or open_
        return min(others, key=lambda stop: (self._visits[stop], -stop))

    def _edge(self, beliefs: SweepBeliefs, *, beside: bool = False) -> int | None:
        """The next one below all that are equal, where the speed falls off a cliff towards it,
        and that was visited once: is it so? ``beside``: only where nothing lies between."""
        lowest = min(beliefs.equal)
        below = max((stop for stop in self._rates if stop < lowest), default=None)
        if below is None or self._visits[below] > 1 or self._n_repeats < 2:
            return None
        if beside and any(below < stop < lowest for stop in self._stops):
            return None
        drop = statistics.median(self._rates[lowest]) / statistics.median(self._rates[below]) - 1
        return below if drop > _DENT else None

    def _wall_below(self) -> int | None:
        """One stop below the highest that failed, if that fails alone: memory may have run out
        there, or it was a crash by chance, and what lies below runs."""
        lowest = min(self._rates)
        wall = max((stop for stop in self._failed if stop < lowest), default=None)
        if wall is None:
            return None
        below = max((stop for stop in self._stops if stop < wall), default=None)
        return None if below in self._visits else below

    def _telling(self, beliefs: SweepBeliefs) -> int | None:
        best = beliefs.stops[beliefs.best_anywhere]
        if best not in self._rates and self._limit - self.n_visits <= 2:
            return best
        for stop in beliefs.most_telling():
            if stop != self._last_visit or len(self._stops) == 1:
                return stop
        return self._last_visit

    def _beliefs(self) -> SweepBeliefs | None:
        """What to think of the curve; None where nothing ran."""
        if not self._rates:
            return None
        if self._thought[0] != self.n_visits:
            self._thought = (self.n_visits, self._think())
        return self._thought[1]

    def _think(self) -> SweepBeliefs:
        import numpy as np

        if self._crowd is None:
            self._crowd = CurveCrowd(sorted({*self._stops, *self._rates}))
            self._known = sorted({*self._stops, *self._rates})
        known = self._known
        visits = summed_up(self._rates)
        curves = self._crowd.draw(visits, seed=self.n_visits)
        runs = self._runs(known, len(curves))
        curves = np.where(runs, curves, -np.inf)
        return SweepBeliefs(known, curves, visits.noise, sorted(self._rates))

    def _runs(self, known: Sequence[int], n_curves: int) -> NDArray[np.bool_]:
        """Which stops run, curve by curve."""
        import numpy as np

        dice = np.random.default_rng(self.n_visits)
        stops = np.array(known)
        lowest = min(self._rates)
        under = [stop for stop in self._failed if stop < lowest]
        floor = max(under, default=-1)
        inner = stops[(stops > floor) & (stops <= lowest)]
        first = dice.choice(inner, n_curves)
        if not under:
            first = np.where(dice.random(n_curves) < self._wall, first, stops[0])
        runs = stops[None, :] >= first[:, None]
        for stop in self._failed:
            runs[:, stops == stop] = False
        return runs

    def _dent(self, beliefs: SweepBeliefs) -> int | None:
        """A stop that was visited once and sticks out downwards, where it matters: is it so?"""
        stops = sorted(self._rates)
        values = {stop: math.log(statistics.median(self._rates[stop])) for stop in stops}
        top = max(values.values())
        for index, stop in enumerate(stops):
            if self._visits[stop] > 1 or len(stops) < 3:
                continue
            around = [*stops[max(index - 2, 0) : index], *stops[index + 1 : index + 3]]
            if 0 < index < len(stops) - 1:
                around = [stops[index - 1], stops[index + 1]]
            left, right = around[0], around[1]
            slope = (values[right] - values[left]) / (right - left)
            line = values[left] + slope * (stop - left)
            if index == 0:
                line = min(line, values[left])
            if values[stop] < line - _DENT and line > top - _MATTERS:
                return stop
        return None

    def _unseen(self, beliefs: SweepBeliefs) -> int | None:
        """What lies unseen beside the best stop, in a gap beside the top, or where memory ends."""
        tried = sorted({*self._rates, *self._failed})
        at = tried.index(beliefs.best)
        lowest = tried.index(min(self._rates))
        top = max(self._rates, key=lambda stop: statistics.median(self._rates[stop]))
        for right in dict.fromkeys((at, at + 1, tried.index(top), tried.index(top) + 1, lowest)):
            low = tried[right - 1] if right > 0 else -1
            high = tried[right] if right < len(tried) else self._last + 1
            if right == lowest and self._is_far_behind(tried[right]):
                continue  # it spills, and below it there is less memory still
            inside = [stop for stop in self._stops if low < stop < high]
            # Between two that are equal may lie a peak that is one stop wide.
            least = 1 if right in (lowest, at, at + 1) else 2
            if len(inside) >= least and beliefs.may_gain(inside):
                return inside[len(inside) // 2]
        return None

    def _is_far_behind(self, stop: int) -> bool:
        rates = {other: statistics.median(found) for other, found in self._rates.items()}
        return _FAR_BEHIND * rates[stop] < max(rates.values())
