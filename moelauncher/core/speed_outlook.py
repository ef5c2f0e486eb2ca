"""How fast every stop will be, said before anything is loaded, and what that rests on.

In: the stops of a plan, what was measured at some of them, what is known of the hardware. Out:
:class:`SpeedOutlook`. Pure; any thread; some milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moelauncher.core.measurement import StopSpeed
from moelauncher.core.speed_estimate import DEPTH_TOKENS, MODEL, SpeedBasis
from moelauncher.core.speed_prediction import (
    SpeedModel,
    TokenTraffic,
    fit_speed,
    scaled_to,
    token_traffic,
)
from moelauncher.core.tune_plan import TunePlan


@dataclass(frozen=True)
class SpeedOutlook:
    """``curve`` is tok/s by the plan's stops; None where it would stream from the disk.
    ``fitted``: measurements of the model itself are in it."""

    curve: tuple[float | None, ...]
    basis: SpeedBasis

    @property
    def fitted(self) -> bool:
        """Whether the model's own measurements are in it."""
        return self.basis.kind == MODEL

    @property
    def model(self) -> SpeedModel:
        """Seconds a byte, a token, a hand-over."""
        return self.basis.model


def speed_outlook(
    plan: TunePlan, speeds: Sequence[StopSpeed], hardware: SpeedBasis
) -> SpeedOutlook:
    """``speeds`` are this model's on this machine, by slider stop (a dense model's: by layers
    on the GPU); ``hardware`` is what to think of the machine without them."""
    reads = plan_traffic(plan)
    measured = {plan.index_of(one.stop): one.median for one in speeds}
    # Below the fastest stop memory may have spilled, which no roofline foretells.
    fastest = max(measured, key=lambda index: measured[index], default=0)
    known = [
        (reads[index], rate) for index, rate in measured.items() if fastest <= index < len(reads)
    ]
    model = fit_speed(known, hardware.model)
    basis = hardware
    if model is not None:
        basis = SpeedBasis(model, MODEL)
    elif known:
        # How far one place carries is not known; no better than the hardware was.
        basis = SpeedBasis(scaled_to(hardware.model, *known[0]), hardware.kind)
    curve = tuple(
        None if stop.forecast.streams_from_disk else basis.model.tok_s(read)
        for stop, read in zip(plan.stops, reads, strict=True)
    )
    return SpeedOutlook(curve, basis)


def plan_traffic(plan: TunePlan) -> list[TokenTraffic]:
    """What one token reads at every stop, so far into a chat as speeds are told for."""
    found = []
    for stop in plan.stops:
        n_ctx = stop.choices.context.n_ctx
        depth = min(DEPTH_TOKENS, n_ctx)
        found.append(token_traffic(plan.facts, stop.placement, stop.forecast, n_ctx, depth))
    return found
