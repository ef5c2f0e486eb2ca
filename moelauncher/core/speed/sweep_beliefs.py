"""What the measurements so far let one believe of every stop: a crowd of curves, and the choice.

Behind :mod:`moelauncher.core.speed.sweep`. Pure; one thread; milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Stops whose speeds differ by less are called equal: no one feels it.
EQUAL = 0.015
#: A choice is good that is no further from the best; and how sure that has to be.
_GOOD, _SURELY_GOOD = 0.03, 0.024
_SURE_TO_YIELD = 0.985
#: For a roomier stop so much is given up at most.
_YIELD = 0.012
#: How likely a stop has to be as fast as the best to be called equal.
_ALIKE = 0.3
#: A loss beyond this is as bad as any.
_WORST = 0.12
_UNLIKELY = 0.01
#: So many stops are weighed against each other, each as if visited so often.
_WEIGHED = 14
_AHEAD = 2


class SweepBeliefs:
    """A crowd of curves, and what follows from it for the choice."""

    def __init__(
        self,
        stops: Sequence[int],
        curves: NDArray[np.float64],
        noise: float,
        measured: Sequence[int],
    ) -> None:
        import numpy as np

        self.stops = stops
        self.noise = noise
        self._curves = curves
        self._losses = np.minimum(curves.max(axis=1, keepdims=True) - curves, _WORST)
        self._value = -self._losses - 0.06 * (self._losses > _GOOD - 0.003)
        value = self._value.mean(axis=0)
        self.best_anywhere = int(value.argmax())
        places = [stops.index(stop) for stop in measured]
        top = max(places, key=lambda place: value[place])
        good = (self._losses <= _GOOD).mean(axis=0)
        level = np.where(np.isfinite(curves), curves, np.nan)
        mean = np.nanmean(level[:, places], axis=0)
        height = dict(zip(places, mean, strict=True))
        ahead = level[:, [top]] - level
        alike = (ahead <= EQUAL).mean(axis=0)
        #: Cannot be told apart from the best, or only by what no one feels.
        equal = [place for place in places if place == top or alike[place] >= _ALIKE]
        self.equal = tuple(stops[place] for place in equal)
        roomiest = max(
            place
            for place in equal
            if place == top
            or (height[place] >= height[top] - _YIELD and good[place] >= _SURE_TO_YIELD)
        )
        self.best = stops[roomiest]
        self.sure = float((self._losses[:, roomiest] <= _SURELY_GOOD).mean())

    def may_gain(self, stops: Sequence[int]) -> bool:
        """Whether one of ``stops`` may be faster than the choice, however unlikely."""
        import numpy as np

        places = [self.stops.index(stop) for stop in stops]
        chosen = self._curves[:, self.stops.index(self.best)]
        better = self._curves[:, places].max(axis=1) > chosen + EQUAL / 2
        return float(np.mean(better)) > _UNLIKELY

    def most_telling(self) -> list[int]:
        """Stops to visit, those first after which the choice will be best."""
        import numpy as np

        curves, value = self._curves, self._value
        chance = (self._losses < EQUAL).mean(axis=0)
        weighed = np.argsort(-chance, kind="stable")[:_WEIGHED]
        spread = max(self.noise, 0.004) / math.sqrt(_AHEAD)
        dice = np.random.default_rng(len(curves))
        gains = {}
        for place in weighed:
            if not chance[place]:
                continue
            true = curves[:, place]
            works = np.isfinite(true)
            seen = np.where(works, true + spread * dice.standard_normal(len(true)), 0.0)
            miss = (seen[:, None] - np.where(works, true, 0.0)[None, :]) / spread
            weight = np.exp(-0.5 * np.minimum(miss**2, 200.0)) * (works[:, None] == works[None, :])
            weight /= weight.sum(axis=1, keepdims=True)
            gains[int(place)] = float((weight @ value).max(axis=1).mean())
        return [self.stops[place] for place in sorted(gains, key=lambda p: -gains[p])]
