"""Tune's whole search: the slider's stops first, then the levers beside it, one after the other.

In: the plan, which levers may be moved, and one result after the other. Out: the next setting to
visit, at any moment the :class:`SweepDecision`. Pure; one thread.

A setting has a number: the slider's stops are 0 to last, whatever differs from them in a lever
comes behind. Each lever is a race: the best so far and the other values are visited in turn (A B
C A B C), what is clearly slower drops out, and a winner has to be better by more than the noise.
A lever is judged by the time for a usual turn, prompt and reply together: a ubatch trades one
against the other. A value that needs more memory takes the lowest stop at which it fits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.speed.levers import (
    THREADS,
    coarse_values,
    difference_text,
    fine_values,
    lever_text,
    value_of,
    with_value,
)
from moelauncher.core.speed.speed_curves import summed_up
from moelauncher.core.speed.sweep import Sweep, SweepDecision
from moelauncher.core.speed.sweep_beliefs import EQUAL
from moelauncher.core.speed.tune_plan import TunePlan, TuneStop
from moelauncher.core.translate import tr

#: Beyond so many standard errors a value is out of the race, or has won it.
_OUT, _WON = 2.5, 2.0


@dataclass(frozen=True)
class TurnLengths:
    """Tokens of a usual turn, by which levers are judged."""

    n_prompt: int
    n_generate: int

    def rate(self, rate: float, prompt_rate: float | None) -> float:
        """Turns a second."""
        reading_s = self.n_prompt / prompt_rate if prompt_rate else 0.0
        return 1 / (reading_s + max(self.n_generate, 1) / rate)


class LeverSearch:
    """A :class:`moelauncher.core.speed.sweep.Search` over stops and levers."""

    def __init__(
        self,
        plan: TunePlan,
        sweep: Sweep,
        levers: Sequence[str],
        turn: TurnLengths,
        *,
        logical_cores: int,
        n_repeats: int = 3,
    ) -> None:
        self._plan = plan
        self._sweep = sweep
        self._waiting = list(levers)
        self._turn = turn
        self._cores = logical_cores
        self._n_repeats = max(n_repeats, 1)
        self._settings = list(plan.stops)
        self._race: _Race | None = None
        self._lever = ""
        self._fine = False
        self._best: int | None = None
        self._n_visits = 0
        self._notes: list[str] = []
        self._swept = False

    # Search

    @property
    def n_visits(self) -> int:
        """See :class:`Search`."""
        return self._n_visits

    @property
    def limit(self) -> int:
        """See :class:`Search`; a lever's race is not known in length before it begins."""
        open_ = sum(
            (1 + len(coarse_values(self._plan.stops[0].choices, lever, self._cores)))
            * self._n_repeats
            for lever in self._waiting
        )
        if self._race is not None:
            open_ += self._race.n_open
        swept = self._n_visits if self._swept else self._sweep.limit
        return max(swept + open_, self._n_visits + 1)

    def next_stop(self) -> int | None:
        """See :class:`Search`."""
        if not self._swept:
            stop = self._sweep.next_stop()
            if stop is not None:
                return stop
            self._swept = True
            self._best = self._sweep.decision().best
        while self._best is not None:
            if self._race is not None:
                setting = self._race.next()
                if setting is not None:
                    return setting
                self._end_race(self._race)
            if not self._begin_race():
                return None
        return None

    def add(
        self,
        stop: int,
        rate: float,
        *,
        disturbed: bool = False,
        prompt_rate: float | None = None,
    ) -> None:
        """See :class:`Search`."""
        self._n_visits += 1
        if self._race is None:
            self._sweep.add(stop, rate, disturbed=disturbed, prompt_rate=prompt_rate)
        elif rate > 0 and math.isfinite(rate):
            self._race.add(stop, self._turn.rate(rate, prompt_rate), disturbed=disturbed)
        else:
            self._race.fail(stop)

    def fail(self, stop: int) -> None:
        """See :class:`Search`."""
        self._n_visits += 1
        if self._race is None:
            self._sweep.fail(stop)
        else:
            self._race.fail(stop)

    def decision(self) -> SweepDecision:
        """See :class:`Search`; ``best`` is a stop, ``setting`` what to take."""
        decided = self._sweep.decision()
        open_ = bool(self._waiting) or self._race is not None
        return replace(
            decided,
            setting=decided.best if self._best is None else self._best,
            lever_notes=tuple(self._notes),
            decided=decided.decided and not open_,
        )

    # What a setting is

    @property
    def plan(self) -> TunePlan:
        """The stops without levers."""
        return self._plan

    def setting(self, number: int) -> TuneStop:
        """The stop, levers included."""
        return self._settings[number]

    def request(self, number: int) -> LoadRequest:
        """What to load for it."""
        return self._plan.request_of(self.setting(number))

    def difference(self, number: int) -> str:
        """How its levers differ from those that the user has; "" where they do not."""
        return difference_text(self.setting(number).choices, self._plan.stops[0].choices)

    # Inside

    def _begin_race(self) -> bool:
        """Line the next lever's values up; False where none is left."""
        assert self._best is not None
        if self._fine:
            values = fine_values(self.setting(self._best).choices, self._lever, self._cores)
        elif self._waiting:
            self._lever = self._waiting.pop(0)
            values = coarse_values(self.setting(self._best).choices, self._lever, self._cores)
        else:
            return False
        here = self.setting(self._best)
        numbers = [self._best]
        for value in values:
            choices = with_value(here.choices, self._lever, value)
            # What takes no memory is tried where it is, whatever the forecast says of the place.
            stop = self._plan.lowest_fit(choices, must_fit=self._lever != THREADS)
            if stop is not None:
                self._settings.append(stop)
                numbers.append(len(self._settings) - 1)
        if len(numbers) > 1:
            self._race = _Race(numbers, self._n_repeats)
        else:
            self._fine = False
        return True

    def _end_race(self, race: _Race) -> None:
        self._race = None
        before, winner = self._best, race.winner()
        self._best = winner
        value = lever_text(self._lever, value_of(self.setting(winner).choices, self._lever))
        value = value[:1].upper() + value[1:]
        if winner != before:
            gain = race.gain_over_first(winner)
            note = tr("{value}: {n:.0f} % less time for a turn.").format(
                value=value, n=100 * (1 - math.exp(-gain))
            )
            moved = self.setting(winner).choices
            if before is not None and moved.cpu_moe != self.setting(before).choices.cpu_moe:
                note += " " + tr("It needs {n} expert layers on the CPU.").format(n=moved.cpu_moe)
            # A finer step says more than the coarse one before it.
            self._notes = [*(self._notes[:-1] if self._fine else self._notes), note]
        elif not self._fine:
            self._notes.append(tr("{value}: no other value is faster.").format(value=value))
        self._fine = winner != before and not self._fine


class _Race:
    """Some settings visited in turn. The first is the one to beat."""

    def __init__(self, numbers: Sequence[int], n_repeats: int) -> None:
        self._first = numbers[0]
        self._n_repeats = max(n_repeats, 2)
        self._alive = list(numbers)
        self._rates: dict[int, list[float]] = {number: [] for number in numbers}
        self._visits = dict.fromkeys(numbers, 0)
        self._last: int | None = None

    @property
    def n_open(self) -> int:
        """Visits that are still to come, if none drops out."""
        return sum(max(self._n_repeats - len(self._rates[n]), 0) for n in self._alive)

    def next(self) -> int | None:
        """The setting to visit; None: it is decided."""
        self._drop()
        if len(self._alive) < 2:
            return None
        open_ = [n for n in self._alive if self._is_open(n)]
        others = [n for n in open_ if n != self._last] or open_
        return min(others, key=lambda n: self._visits[n], default=None)

    def add(self, number: int, rate: float, *, disturbed: bool) -> None:
        """A visit's turns a second."""
        self._visited(number)
        if not disturbed:
            self._rates[number].append(rate)

    def fail(self, number: int) -> None:
        """It does not run."""
        self._visited(number)
        if number in self._alive and number != self._first:
            self._alive.remove(number)

    def winner(self) -> int:
        """The best, where it is better than the first by more than the noise."""
        known = [n for n in self._alive if self._rates[n]]
        if self._first not in known:
            return max(known, key=self._mean, default=self._first)
        best = max(known, key=self._mean)
        gain = self.gain_over_first(best)
        return best if gain > max(EQUAL, _WON * self._doubt(best, self._first)) else self._first

    def gain_over_first(self, number: int) -> float:
        """By how much (log) it is faster."""
        return self._mean(number) - self._mean(self._first) if self._rates[self._first] else 0.0

    def _is_open(self, number: int) -> bool:
        # One that is only ever disturbed must not hold the race up.
        few = len(self._rates[number]) < self._n_repeats
        return few and self._visits[number] < 2 * self._n_repeats

    def _visited(self, number: int) -> None:
        self._visits[number] += 1
        self._last = number

    def _mean(self, number: int) -> float:
        return statistics.fmean(math.log(rate) for rate in self._rates[number])

    def _doubt(self, one: int, other: int) -> float:
        noise = summed_up({n: rates for n, rates in self._rates.items() if rates}).noise
        return noise * math.sqrt(sum(1 / len(self._rates[n]) for n in (one, other)))

    def _drop(self) -> None:
        """Who is clearly behind is not visited again."""
        known = [n for n in self._alive if len(self._rates[n]) > 1]
        if len(known) < 2:
            return
        best = max(known, key=self._mean)
        for number in known:
            behind = self._mean(best) - self._mean(number)
            if number != best and behind > max(EQUAL, _OUT * self._doubt(best, number)):
                self._alive.remove(number)
