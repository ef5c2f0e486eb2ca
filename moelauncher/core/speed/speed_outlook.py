"""How fast every stop will be, said before anything is loaded, and what that rests on.

In: the stops of a plan, what was measured at some of them, what is known of the hardware. Out:
:class:`SpeedOutlook`. Pure; any thread; some milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.speed.measurement import StopSpeed
from moelauncher.core.speed.speed_estimate import DEPTH_TOKENS, MODEL, SpeedBasis, basis_text
from moelauncher.core.speed.speed_prediction import (
    SpeedModel,
    TokenTraffic,
    fit_speed,
    scaled_to,
    token_traffic,
)
from moelauncher.core.speed.tune_plan import TunePlan
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_rate

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.memory_forecast import MemoryForecast
    from moelauncher.core.memory.placement import Placement


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


@dataclass(frozen=True)
class ExpectedSpeed:
    """One placement's speed, said before it is loaded; ``tok_s`` None: it streams from the disk."""

    traffic: TokenTraffic
    basis: SpeedBasis
    tok_s: float | None

    def to_json(self) -> dict[str, object]:
        """As ``plan --json`` tells it; bytes are those of one token."""
        return {
            "tok_s": self.tok_s,
            "basis": self.basis.kind,
            "error": self.basis.model.error,
            "vram_bytes": round(self.traffic.vram_bytes),
            "ram_bytes": round(self.traffic.ram_bytes),
            "bus_bytes": round(self.traffic.bus_bytes),
        }

    @property
    def text(self) -> str:
        """Two sentences for the terminal."""
        reads = tr("One token reads {vram} of VRAM and {ram} of RAM; {bus} cross the bus.").format(
            vram=format_bytes(round(self.traffic.vram_bytes)),
            ram=format_bytes(round(self.traffic.ram_bytes)),
            bus=format_bytes(round(self.traffic.bus_bytes)),
        )
        if not self.traffic.vram_bytes:
            ram = format_bytes(round(self.traffic.ram_bytes))
            reads = tr("One token reads {ram} of RAM.").format(ram=ram)
        if self.tok_s is None:
            return tr("It will be as fast as the disk is.") + " " + reads
        rate = tr("Expected speed: about {rate} ({why}).").format(
            rate=format_rate(self.tok_s), why=basis_text(self.basis)
        )
        return f"{rate} {reads}"


def expected_speed(
    facts: ModelFacts,
    placement: Placement,
    forecast: MemoryForecast,
    n_ctx: int,
    basis: SpeedBasis,
) -> ExpectedSpeed:
    """What ``basis`` foretells for a placement, so far into a chat as speeds are told for."""
    read = token_traffic(facts, placement, forecast, n_ctx, min(DEPTH_TOKENS, n_ctx))
    rate = None if forecast.streams_from_disk else basis.model.tok_s(read)
    return ExpectedSpeed(read, basis, rate)


def plan_traffic(plan: TunePlan) -> list[TokenTraffic]:
    """What one token reads at every stop, so far into a chat as speeds are told for."""
    found = []
    for stop in plan.stops:
        n_ctx = stop.choices.context.n_ctx
        depth = min(DEPTH_TOKENS, n_ctx)
        found.append(token_traffic(plan.facts, stop.placement, stop.forecast, n_ctx, depth))
    return found
