"""Plays a recorded sweep to the search, without an engine: how good are its choices?

In: how fast each stop is (a function, which may add noise). Out: :class:`PlayedSweep`. Pure.

    played = play(40, lambda stop, visit: recorded[stop] * (1 + dice.gauss(0, 0.026)))
    played.decision.best, played.decision.equal, len(played.visits)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moelauncher.core.speed.sweep import Sweep, SweepDecision


@dataclass(frozen=True)
class PlayedSweep:
    """``visits`` are the visited stops in order, failed ones included: each is one
    measurement. ``limit`` is what the search allowed itself."""

    decision: SweepDecision
    visits: tuple[int, ...]
    limit: int


def play(
    last: int,
    rate_of: Callable[[int, int], float | None],
    *,
    present: int | None = None,
    sweep: Sweep | None = None,
) -> PlayedSweep:
    """A whole search over the stops 0..``last``.

    ``rate_of`` gets a stop and the number of the visit (from 0 on) and gives tok/s, None
    where the stop cannot run. ``present`` is the user's own stop, None: everything on the
    CPU. ``sweep`` is a search that was made with other options (``last`` and ``present`` are
    not looked at then).
    """
    if sweep is None:
        sweep = Sweep(last, present=last if present is None else present)
    visits: list[int] = []
    while (stop := sweep.next_stop()) is not None:
        rate = rate_of(stop, len(visits))
        visits.append(stop)
        if rate is None:
            sweep.fail(stop)
        else:
            sweep.add(stop, rate)
    return PlayedSweep(sweep.decision(), tuple(visits), sweep.limit)
