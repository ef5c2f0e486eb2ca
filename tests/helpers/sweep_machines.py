"""Machines that a sweep is played on: published curves, noise, outliers, walls.

The curves are what people measured and posted (llama-bench tables, issue threads); between
their points the line is straight.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moelauncher.core.speed.played_sweep import PlayedSweep
from moelauncher.core.speed.played_sweep import play as play_sweep
from moelauncher.core.speed.sweep import Sweep

Curve = Sequence[float | None]  # tok/s by stop; None: out of memory


def between(points: Mapping[int, float | None], last: int) -> list[float | None]:
    """The curve through ``points``; up to a point without memory there is none."""
    known = sorted(points)
    curve: list[float | None] = []
    for stop in range(last + 1):
        low = max((n for n in known if n <= stop), default=known[0])
        high = min((n for n in known if n >= stop), default=known[-1])
        left, right = points[low], points[high]
        if stop in points:
            curve.append(points[stop])
        elif left is None or right is None:
            curve.append(None)
        elif low == high:
            curve.append(left)
        else:
            curve.append(left + (right - left) * (stop - low) / (high - low))
    return curve


#: An error where memory runs out.
WALL = between({0: None, 16: None, 18: 48.2, 20: 46.9, 22: 45.4, 24: 44.3, 28: 42.6, 40: 38.5}, 40)
#: Almost no room at all.
NARROW = between({0: None, 36: None, 37: 26.78, 38: 26.33, 39: 25.97, 40: 25.49}, 40)
#: VRAM spills without an error.
CLIFF = between({0: 33.8, 8: 44.1, 16: 40.7, 24: 30.4, 40: 21.9}, 40)
#: Many settings are alike.
PLATEAU = between({0: 30.0, 8: 40.2, 12: 40.6, 16: 40.2, 20: 34.7, 40: 24.0}, 40)
#: Each layer back on the GPU costs speed: it had spilled all along.
SPILLED = between({24: 11.71, 28: 12.85, 32: 14.06, 36: 15.29, 40: 16.88}, 40)
#: Half the speed from one layer to the next.
EDGE: Curve = [20.0 if stop < 13 else 50.0 - 0.6 * (stop - 13) for stop in range(41)]
#: From 25 on nothing changes any more.
NO_OP: Curve = [50.0 - stop if stop < 25 else 25.0 for stop in range(41)]
FLAT: Curve = [40.0] * 41
LINE: Curve = [60.0 - 0.8 * stop for stop in range(49)]

CURVES: Mapping[str, Curve] = {
    "wall": WALL,
    "narrow": NARROW,
    "cliff": CLIFF,
    "plateau": PLATEAU,
    "spilled": SPILLED,
    "edge": EDGE,
    "no-op": NO_OP,
    "flat": FLAT,
    "line": LINE,
}


FAMILIES = (
    "wall",
    "narrow wall",
    "cliff",
    "cliff and wall",
    "hill",
    "spike",
    "plateau",
    "no-op",
    "spilled",
    "table",
    "table and wall",
)
_LASTS = (23, 24, 30, 36, 40, 48, 58, 61, 93)


def drawn_curve(family: str, seed: int) -> Curve:
    """A machine of that kind, its size and its numbers drawn by chance."""
    dice = random.Random(f"{family} {seed}")
    last = dice.choice(_LASTS)
    top, growth = dice.uniform(8, 120), dice.uniform(1.15, 3.0)
    place = dice.randrange(1, last - 1)

    def falling(stop: int) -> float:
        """The time for a token grows evenly."""
        return top / (1 + (growth - 1) * stop / last)

    def hill(low: float, high: float) -> list[float | None]:
        left, right = dice.uniform(low, high), dice.uniform(0.01, 0.04)
        return [
            top / (1 + (left * (place - s) if s < place else right * (s - place)))
            for s in range(last + 1)
        ]

    def cliff() -> list[float | None]:
        drop, slope = dice.uniform(0.08, 0.7), dice.uniform(-0.03, 0.03)
        return [
            falling(s)
            if s >= place
            else falling(place) * (1 - drop) * max(0.2, 1 - slope * (place - s))
            for s in range(last + 1)
        ]

    def table() -> list[float | None]:
        """A few points as people post them, with one best."""
        n_points = dice.randrange(4, 8)
        stops = [0, *sorted(dice.sample(range(1, last), n_points - 2)), last]
        best = dice.randrange(n_points)
        rates = [top] * n_points
        for index in range(best - 1, -1, -1):
            rates[index] = rates[index + 1] * dice.uniform(0.7, 1.0)
        for index in range(best + 1, n_points):
            rates[index] = rates[index - 1] * dice.uniform(0.75, 0.99)
        return between(dict(zip(stops, rates, strict=True)), last)

    def walled(curve: list[float | None], first: int) -> list[float | None]:
        return [None if stop < first else speed for stop, speed in enumerate(curve)]

    line: list[float | None] = [falling(stop) for stop in range(last + 1)]
    until = dice.randrange(last // 3, last)
    wide = dice.randrange(3, max(4, last // 2))
    wall = dice.randrange(0, last - 1)
    return {
        "wall": lambda: walled(line, wall),
        "narrow wall": lambda: walled(line, last - dice.randrange(1, 5)),
        "cliff": cliff,
        "cliff and wall": lambda: walled(cliff(), wall),
        "hill": lambda: hill(0.005, 0.03),
        "spike": lambda: hill(0.03, 0.12),
        "plateau": lambda: [
            top / (1 + 0.03 * max(place - s, 0) + 0.025 * max(s - place - wide, 0))
            for s in range(last + 1)
        ],
        "no-op": lambda: [falling(min(s, until)) for s in range(last + 1)],
        "spilled": lambda: line[::-1],
        "table": table,
        "table and wall": lambda: walled(table(), wall),
    }[family]()


@dataclass(frozen=True)
class Noise:
    """How results scatter: from load to load, from run to run, and by sudden disturbance."""

    load: float = 0.013
    run: float = 0.007
    outliers: float = 0.03


def play(curve: Curve, seed: int, noise: Noise = Noise(), **options: object) -> PlayedSweep:
    """A whole search on one machine; the user's own setting is everything on the CPU."""
    dice = random.Random(seed)
    last = len(curve) - 1

    def rate_of(stop: int, _visit: int) -> float | None:
        speed = curve[stop]
        if speed is None:
            return None
        factor = 1 + dice.gauss(0, noise.load) + dice.gauss(0, noise.run)
        if dice.random() < noise.outliers:
            factor *= dice.uniform(0.5, 0.85)
        return speed * max(factor, 0.1)

    sweep = Sweep(last, **{"present": last, **options})  # type: ignore[arg-type]
    return play_sweep(last, rate_of, sweep=sweep)


def best_of(curve: Curve) -> float:
    """The highest speed there is."""
    return max(speed for speed in curve if speed is not None)


def is_good(curve: Curve, stop: int | None) -> bool:
    """Whether the choice is within 3 % of the best."""
    speed = None if stop is None else curve[stop]
    return speed is not None and speed >= 0.97 * best_of(curve)
