"""What a model will do on this machine, as one short line: the row's third line.

In: facts, the machine, the context. Out: :class:`Verdict`, by Auto's placement and the formula's
forecast (no dry run: a list has too many rows to ask llama.cpp of each). Pure; any thread; some
milliseconds a model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moelauncher.core.memory.auto_placement import AutoPlacement, Machine, auto_placement, gpus_fit
from moelauncher.core.memory.placement import expert_stops
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_tokens

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.memory_forecast import MemoryForecast
    from moelauncher.core.memory.placement import Placement

GPU, SPLIT, CPU, DISK, NO = "gpu", "split", "cpu", "disk", "no"


@dataclass(frozen=True)
class Verdict:
    """``kind``: "gpu" all on the GPU, "split" some layers on the CPU, "cpu" without a GPU,
    "disk" weights are read from the disk again and again, "no" will not run here.

    ``level`` is the colour of its dot: "good", "warn" or "bad". Placement and forecast are Auto's.
    """

    kind: str
    level: str
    text: str
    forecast: MemoryForecast
    placement: Placement


def verdict_of(facts: ModelFacts, machine: Machine, context: ContextSettings) -> Verdict:
    """How ``facts`` would run at Auto. A context beyond the model's own is cut to it."""
    if facts.ctx_train and context.n_ctx > facts.ctx_train:
        context = replace(context, n_ctx=facts.ctx_train)
    auto = auto_placement(facts, machine, context)
    kind, level, text = _judged(facts, machine, context, auto)
    return Verdict(kind, level, text, auto.forecast, auto.placement)


def _judged(
    facts: ModelFacts, machine: Machine, context: ContextSettings, auto: AutoPlacement
) -> tuple[str, str, str]:
    result, placement = auto.forecast, auto.placement
    if machine.gpus and not gpus_fit(result):
        return NO, "bad", _too_small(auto.largest_ctx, context.n_ctx)
    if not result.ram.fits:
        short = format_bytes(-(result.ram.spare_bytes or 0))
        if result.streams_from_disk:
            text = tr("from disk: RAM {size} short").format(size=short)
            return DISK, "warn", text
        text = tr("will not run here: RAM {size} short").format(size=short)
        return NO, "bad", text
    if not machine.gpus:
        return CPU, "good", tr("fits in RAM, runs on the CPU")
    if expert_stops(facts):
        n_away, of = placement.cpu_moe, placement.of
    else:
        of = facts.n_layer_all + 1
        n_away = of - placement.n_gpu_layers
    if not n_away:
        return GPU, "good", tr("fits on the GPU")
    if n_away == of and not expert_stops(facts):
        return SPLIT, "warn", tr("fits, all layers on the CPU")
    text = (
        tr("fits with {n} layers on the CPU") if n_away > 1 else tr("fits with 1 layer on the CPU")
    )
    return SPLIT, "good", text.format(n=n_away)


def _too_small(largest_ctx: int | None, n_ctx: int) -> str:
    if largest_ctx is not None and largest_ctx < n_ctx:
        return tr("will not run here at {ctx}: up to {largest}").format(
            ctx=format_tokens(n_ctx), largest=format_tokens(largest_ctx)
        )
    return tr("will not run here: the GPU is too small")
