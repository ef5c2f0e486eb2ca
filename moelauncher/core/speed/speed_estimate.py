"""What decode speed to expect of a model that is not measured at that setting, and how surely.

In: Auto's verdict, and what is known of this machine: a fit to the model's own measurements, or
replies of any models (traffic, tok/s). Out: :class:`SpeedBasis`, and one line that says the speed
as an estimate, with its error. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.memory.model_verdict import DISK, NO
from moelauncher.core.speed.speed_prediction import (
    USUAL_HARDWARE,
    SpeedModel,
    TokenTraffic,
    fit_speed,
    scaled_to,
    token_traffic,
)
from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.model_verdict import Verdict

#: So far into a chat the speed is told.
DEPTH_TOKENS = 512

MODEL, REPLIES, ONE_REPLY = "model", "replies", "one reply"
BANDWIDTH, USUAL = "bandwidth", "usual"


@dataclass(frozen=True)
class SpeedBasis:
    """``kind``: MODEL (measurements of the model itself), REPLIES of models on this machine,
    ONE_REPLY, BANDWIDTH (of its memories), or USUAL (nothing is known of this machine)."""

    model: SpeedModel
    kind: str


def basis_of(
    replies: Sequence[tuple[TokenTraffic, float]], hardware: SpeedModel | None = None
) -> SpeedBasis:
    """The best guess from the replies that this machine gave (traffic, tok/s), and from its
    measured bandwidths (``hardware``, None: not measured)."""
    start = USUAL_HARDWARE if hardware is None else hardware
    fitted = fit_speed(replies, start)
    if fitted is not None:
        return SpeedBasis(fitted, REPLIES)
    if not replies:
        return SpeedBasis(start, USUAL if hardware is None else BANDWIDTH)
    # One place tells how fast the machine is in all, not which part of it.
    return SpeedBasis(scaled_to(start, *replies[0]), ONE_REPLY)


def estimated_tok_s(
    facts: ModelFacts, verdict: Verdict, context: ContextSettings, basis: SpeedBasis
) -> float | None:
    """Decode speed at Auto; None where it does not run, or reads from the disk."""
    if verdict.kind in (NO, DISK):
        return None
    n_ctx = min(context.n_ctx, facts.ctx_train or context.n_ctx)
    depth = min(DEPTH_TOKENS, n_ctx)
    read = token_traffic(facts, verdict.placement, verdict.forecast, n_ctx, depth)
    return basis.model.tok_s(read)


def estimate_text(
    facts: ModelFacts, verdict: Verdict, context: ContextSettings, basis: SpeedBasis
) -> str:
    """The estimate and its error as a line; "" where there is none to give."""
    if verdict.kind == NO:
        return ""
    tok_s = estimated_tok_s(facts, verdict, context, basis)
    if tok_s is None:
        return tr("as fast as the disk is: weights are read from it again and again")
    rate = tr("about {rate}").format(rate=format_rate(tok_s))
    return f"{rate} ({basis_text(basis)})"


def basis_text(basis: SpeedBasis) -> str:
    """What an estimate rests on, and how far it may be off."""
    how = {
        MODEL: tr("estimate from this model's measurements, which it misses by {n:.0f} %"),
        REPLIES: tr("estimate from replies on this machine, which it misses by {n:.0f} %"),
        ONE_REPLY: tr("estimate from one reply on this machine: may be off by half"),
        BANDWIDTH: tr("estimate from the measured bandwidth of memory: usually within {n:.0f} %"),
        USUAL: tr("estimate for usual hardware: this machine may be twice as fast or half"),
    }[basis.kind]
    return how.format(n=100 * basis.model.error)
