"""What noisy visits say of the speed at each stop: a straight line through its surroundings.

In: tok/s of each visit by stop. Out: :class:`SpeedCurve`. Pure; any thread.

A single stop is known no better than its few visits; its neighbours know too, since the time
for a token grows evenly with each layer. So each stop's speed is read off a line through the
visits around it, outliers left out. A cliff (memory that spills) breaks the line: what lies
behind one says nothing of what lies before it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.one_hill import one_hill

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: What one visit is trusted to before its own spread is known, and at best.
USUAL_NOISE = 0.015
_LEAST_NOISE = 0.004
_TRUST_IN_USUAL = 4.0
#: A drop towards fewer layers on the CPU that is a cliff: no layer costs as much.
_CLIFF = 0.07
#: Beyond so many times the noise a visit is an outlier.
_OUTLIER = 4.0
_ROUNDS = 6


@dataclass(frozen=True)
class SpeedCurve:
    """By measured stop: the logarithm of its speed, and how far that may be wrong (1 sigma)."""

    heights: Mapping[int, float]
    doubts: Mapping[int, float]
    noise: float  # relative spread of one visit


def speed_curve(visits: Mapping[int, Sequence[float]]) -> SpeedCurve:
    """The curve through ``visits`` (tok/s, at least one a stop)."""
    stops = sorted(stop for stop, rates in visits.items() if rates)
    if not stops:
        return SpeedCurve({}, {}, USUAL_NOISE)
    import numpy as np  # not above: it would delay the window

    noise = _noise(visits)
    heights, doubts = {}, {}
    for shelf in _shelves(stops, visits):
        x = np.array([stop for stop in shelf for _ in visits[stop]], dtype=float)
        y = np.log(np.array([rate for stop in shelf for rate in visits[stop]], dtype=float))
        reach = max(4.0, (shelf[-1] - shelf[0]) / 3)
        top = _top(shelf, visits)
        for stop in shelf:
            heights[stop], doubts[stop] = _line_at(stop, top, x, y, reach, noise)
    return SpeedCurve(heights, doubts, noise)


def _top(shelf: Sequence[int], visits: Mapping[int, Sequence[float]]) -> int:
    """Where the hill over these stops has its top: the line may bend there."""
    values = [math.log(statistics.median(visits[stop])) for stop in shelf]
    hill = one_hill(values, [float(len(visits[stop])) for stop in shelf])
    return shelf[max(range(len(hill)), key=lambda index: hill[index])]


def _noise(visits: Mapping[int, Sequence[float]]) -> float:
    squares, freedom = USUAL_NOISE**2 * _TRUST_IN_USUAL, _TRUST_IN_USUAL
    for rates in visits.values():
        if len(rates) > 1:
            middle = statistics.median(rates)
            # An outlier tells of a disturbance, not of the noise.
            squares += sum(min(abs(rate / middle - 1), 0.05) ** 2 for rate in rates)
            freedom += len(rates) - 1
    return max(math.sqrt(squares / freedom), _LEAST_NOISE)


def _shelves(stops: Sequence[int], visits: Mapping[int, Sequence[float]]) -> list[list[int]]:
    """The stops, parted where the speed falls off a cliff towards fewer layers on the CPU."""
    values = [math.log(statistics.median(visits[stop])) for stop in stops]
    hill = one_hill(values, [float(len(visits[stop])) for stop in stops])
    shelves: list[list[int]] = [[stops[0]]]
    for before, stop, low, high in zip(stops, stops[1:], hill, hill[1:], strict=False):
        if high - low > _CLIFF and (high - low) / (stop - before) > _CLIFF / 8:
            shelves.append([])
        shelves[-1].append(stop)
    return shelves


def _line_at(
    stop: int,
    top: int,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    reach: float,
    noise: float,
) -> tuple[float, float]:
    import numpy as np

    distance = np.abs(x - stop)
    near = np.maximum(0.0, 1 - (distance / (reach + 1)) ** 2)
    inside = np.unique(x[near > 0])
    columns = [np.ones_like(x)]
    if len(inside) > 1:
        columns.append(x - stop)
    if (inside < top).sum() > 1 and (inside > top).sum() > 1:
        columns.append(np.maximum(0.0, top - x) - max(0, top - stop))
    basis = np.stack(columns, axis=1)
    trust = np.ones_like(y)
    level, doubt = 0.0, noise
    for _ in range(_ROUNDS):
        weighted = basis * (near * trust)[:, None]
        # The first row of the solution is the level at the stop: every other column is 0 there.
        solution = np.linalg.pinv(weighted.T @ basis, rcond=1e-9) @ weighted.T
        parts = solution @ y
        level = float(parts[0])
        doubt = noise * float(np.sqrt((solution[0] ** 2).sum()))
        miss = np.abs(y - basis @ parts) / (_OUTLIER * noise)
        trust = np.maximum(1e-6, (1 - np.minimum(miss, 1.0) ** 2) ** 2)
    return level, doubt
