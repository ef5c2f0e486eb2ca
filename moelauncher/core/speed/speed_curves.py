"""What the speeds at all stops may be, given some noisy visits: a crowd of likely curves.

In: visits by stop, stops that failed. Out: :class:`CurveCrowd`, a few hundred curves, each as
likely as the others. Pure; any thread; about a millisecond.

A single stop is known no better than its few visits; its neighbours know too, since the time
for a token grows evenly with each layer. A curve is a straight line (on a logarithmic scale)
plus something smooth, and may break off at one place: below it memory spills, with any jump and
any slope. Below another place nothing runs at all. Where these places are, how smooth the curve
is and how loud the noise, is not chosen but averaged over, by how well it explains the visits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Relative spread of one visit, before there are two of one stop; and at best.
USUAL_NOISE = 0.018
_LEAST_NOISE = 0.004
_TRUST_IN_USUAL = 3.0
#: Beyond so many times the noise, and by so much, a visit was disturbed.
_OUTLIER, _LEAST_OUTLIER = 4.0, 0.04
_MOST_DISTURBED = 0.45

# All times are in units of the shortest that was seen.
#: (spread, length as a share of the range, how likely) of what a curve has beside its line.
_SMOOTHNESS = (
    (0.003, 1.0, 0.25),
    (0.03, 0.15, 0.2),
    (0.06, 0.4, 0.2),
    (0.12, 0.12, 0.15),
    (0.25, 0.5, 0.2),
)
_LEVEL = 0.6
#: Over the whole range the time for a token grows by so much.
_GROWTH, _GROWTH_SPREAD = 0.7, 0.8
#: Where memory spills: how much longer a token takes, and what slope is added.
_DROP, _DROP_SPREAD, _TURN_SPREAD = 0.3, 0.35, 1.2
_BREAK_LIKELY = 0.5
#: How much slower than the best is a matter of indifference.
_FAR, _FAR_SPREAD, _FARTHEST = 1.0, 0.5, 3.0
_LEAST_TIME = 0.4


@dataclass(frozen=True)
class Visits:
    """Undisturbed rates of each stop in short: mean of the logarithms, and how many."""

    mean: Mapping[int, float]
    count: Mapping[int, int]
    noise: float


def summed_up(rates: Mapping[int, Sequence[float]]) -> Visits:
    """``rates`` (tok/s by stop) without what sticks out; the noise from all stops together."""
    logs = {stop: sorted(math.log(rate) for rate in found) for stop, found in rates.items()}
    kept, noise = logs, USUAL_NOISE
    for _ in range(2):
        kept = {stop: _undisturbed(values, noise) for stop, values in logs.items()}
        noise = _noise(kept)
    again = [stop for stop, values in logs.items() if len(values) > 1]
    n_dropped = sum(len(logs[stop]) - len(kept[stop]) for stop in again)
    if n_dropped > _MOST_DISTURBED * sum(len(logs[stop]) for stop in again):
        # So many are no exceptions: this machine is that restless.
        noise = _noise(logs)
        kept = {stop: _undisturbed(values, noise) for stop, values in logs.items()}
    return Visits(
        {stop: statistics.fmean(values) for stop, values in kept.items()},
        {stop: len(values) for stop, values in kept.items()},
        noise,
    )


def _noise(logs: Mapping[int, Sequence[float]]) -> float:
    """The spread of one visit, from all stops that were visited again."""
    squares, freedom = USUAL_NOISE**2 * _TRUST_IN_USUAL, _TRUST_IN_USUAL
    for values in logs.values():
        if len(values) > 1:
            mean = statistics.fmean(values)
            squares += sum((value - mean) ** 2 for value in values)
            freedom += len(values) - 1
    return max(math.sqrt(squares / freedom), _LEAST_NOISE)


def _undisturbed(values: Sequence[float], noise: float) -> list[float]:
    """Of sorted ``values`` the largest group that belongs together; of two the faster."""
    width = max(_OUTLIER * noise, _LEAST_OUTLIER) * 1.5
    groups = [[value for value in values if top - width <= value <= top] for top in values]
    return max(reversed(groups), key=len)


@dataclass(frozen=True)
class _Break:
    """The curve breaks off: the first stop above it has an index from ``low`` to ``high``
    (0: there is no break), ``n_below`` tried stops lie below it."""

    n_below: int
    low: int
    high: int
    log_odds: float


@dataclass(frozen=True)
class _Data:
    at: NDArray[np.int_]  # indices of the tried stops
    wanted: Floats  # times that were seen there, above the mean line
    variance: Floats


class CurveCrowd:
    """Draws curves over ``stops`` (in order) that go with what was visited."""

    def __init__(self, stops: Sequence[int], *, n_curves: int = 128) -> None:
        import numpy as np  # not above: it would delay the window

        self.n_curves = n_curves
        self._x = np.array(stops, dtype=float)
        self._span = max(self._x[-1] - self._x[0], 8.0)
        self._index = {stop: place for place, stop in enumerate(stops)}
        far = np.abs(self._x[:, None] - self._x[None, :])
        smooth = []
        for spread, length, _ in _SMOOTHNESS:
            reach = math.sqrt(3) * far / max(length * self._span, 1.5)
            smooth.append(spread**2 * (1 + reach) * np.exp(-reach))
        self._smooth = np.stack(smooth)
        self._roots = np.linalg.cholesky(self._smooth + 1e-9 * np.eye(len(stops)))
        self._odds = np.log([odds for _, _, odds in _SMOOTHNESS])
        self._slope = (self._x - self._x.mean()) / self._span
        self._line = _LEVEL**2 + _GROWTH_SPREAD**2 * np.outer(self._slope, self._slope)

    def draw(self, visits: Visits, seed: int) -> Floats:
        """``n_curves`` rows of log speeds over all stops, whether or not they run."""
        import numpy as np

        dice = np.random.default_rng(seed)
        tried = sorted(visits.mean)
        at = np.array([self._index[stop] for stop in tried], dtype=int)
        highest = max(visits.mean.values())
        times = np.exp([highest - visits.mean[stop] for stop in tried])
        count = np.array([visits.count[stop] for stop in tried])
        far = np.maximum(times - 1 - _FAR, 0.0)
        times = np.minimum(times, _FARTHEST)
        variance = (visits.noise * times) ** 2 / count + (_FAR_SPREAD * far) ** 2
        quick = int(times.argmin())
        # The mean line goes through the best that was seen.
        ground = times[quick] + _GROWTH * (self._slope - self._slope[at[quick]])
        data = _Data(at, times - ground[at], variance)
        breaks = self._breaks(at)
        odds, inverses = self._explained(data, breaks)
        share = np.exp(odds - odds.max()).ravel()
        total = np.cumsum(share / share.sum())
        picks = np.searchsorted(total, (np.arange(self.n_curves) + dice.random()) / self.n_curves)
        found = []
        for pick, count in zip(*np.unique(picks, return_counts=True), strict=True):
            number, kind = divmod(min(int(pick), share.size - 1), len(_SMOOTHNESS))
            likely = (breaks[number], kind, inverses[number, kind])
            found.append(self._curves(data, *likely, int(count), dice))
        crowd: Floats = np.concatenate(found) + ground
        # What is far behind says little of the others, of itself it says enough.
        slow = far > 0
        scatter = visits.noise * dice.standard_normal((len(crowd), int(slow.sum())))
        crowd[:, at[slow]] = times[slow] * np.exp(scatter)
        return np.asarray(highest - np.log(np.maximum(crowd, _LEAST_TIME)))

    def _breaks(self, at: NDArray[np.int_]) -> list[_Break]:
        """No break, and one in each gap between tried stops and below them."""
        breaks = [_Break(0, 0, 0, math.log(1 - _BREAK_LIKELY))]
        for n_below, place in enumerate(at):
            low = 1 if n_below == 0 else int(at[n_below - 1]) + 1
            if low <= place:
                share = (place - low + 1) / max(len(self._x) - 1, 1)
                breaks.append(_Break(n_below, low, int(place), math.log(_BREAK_LIKELY * share)))
        return breaks

    def _turn(self, one: _Break) -> Floats:
        """How far each stop lies from the break."""
        import numpy as np

        middle = (self._x[one.low] + self._x[one.high]) / 2
        return np.asarray((self._x - middle) / self._span)

    def _explained(self, data: _Data, breaks: Sequence[_Break]) -> tuple[Floats, Floats]:
        """Log likelihood of the visits by break and smoothness, and the inverse covariances."""
        import numpy as np

        at, n_data = data.at, len(data.at)
        below = np.arange(n_data)[None, :] < np.array([one.n_below for one in breaks])[:, None]
        turns = np.stack([self._turn(one)[at] for one in breaks]) * below
        lines = (
            self._line[np.ix_(at, at)]
            + _DROP_SPREAD**2 * below[:, :, None] * below[:, None, :]
            + _TURN_SPREAD**2 * turns[:, :, None] * turns[:, None, :]
            + np.diag(data.variance)
        )
        same = below[:, :, None] == below[:, None, :]
        covariance = lines[:, None] + same[:, None] * self._smooth[:, at][:, :, at][None]
        inverses = np.linalg.inv(covariance)
        _, size = np.linalg.slogdet(covariance)
        wanted = data.wanted - _DROP * below
        fit = np.einsum("ei,ekij,ej->ek", wanted, inverses, wanted, optimize=True)
        prior = np.array([one.log_odds for one in breaks])[:, None] + self._odds
        return prior - 0.5 * (fit + size), inverses

    def _curves(
        self,
        data: _Data,
        one: _Break,
        kind: int,
        inverse: Floats,
        count: int,
        dice: np.random.Generator,
    ) -> Floats:
        """Curves that go through the visits: any curve, moved by what it misses them by."""
        import numpy as np

        at, n_stops = data.at, len(self._x)

        def normal(n: int) -> Floats:
            return dice.standard_normal((count, n))

        line = _LEVEL * normal(1) + _GROWTH_SPREAD * normal(1) * self._slope
        curves = line + normal(n_stops) @ self._roots[kind].T
        turn, below = self._turn(one), np.zeros((count, n_stops), dtype=bool)
        if one.high:
            first = dice.integers(one.low, one.high + 1, (count, 1))
            below = np.arange(n_stops) < first
            # What is smooth above says nothing of what is below.
            broken = line + normal(n_stops) @ self._roots[kind].T
            broken += _DROP_SPREAD * normal(1) + _DROP + _TURN_SPREAD * normal(1) * turn
            curves = np.where(below, broken, curves)
        miss = data.wanted - curves[:, at] - np.sqrt(data.variance) * normal(len(at))
        moves = miss @ inverse
        smooth = self._smooth[kind][at]
        under = moves * (np.arange(len(at)) < one.n_below)
        upper = (moves - under) @ smooth
        if one.high:
            lower = under @ (smooth + _DROP_SPREAD**2)
            lower += _TURN_SPREAD**2 * (under @ turn[at])[:, None] * turn
            upper = np.where(below, lower, upper)
        return np.asarray(curves + moves @ self._line[at] + upper)
