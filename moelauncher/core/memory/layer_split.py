"""The placement that layer-splitting programs choose: whole layers on the GPU, as many as fit.

Experts are not set apart: a layer is on the GPU with all of them, or in RAM with attention and
KV cache. It is the baseline that people come from. In: facts, machine, context. Out: the
placement, None where there is none of its own. Pure; any thread; some milliseconds.
"""

from __future__ import annotations

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine, forecast_on, gpus_fit
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import Placement, expert_stops
from moelauncher.core.translate import tr


def layer_split(
    facts: ModelFacts, machine: Machine, context: ContextSettings, *, use_mmap: bool = True
) -> Placement | None:
    """``-ngl k`` with the largest k that fits. None without a GPU, for a model whose slider
    counts layers anyway, and where the whole model fits: that is stop 0.
    """
    if not machine.gpus or not expert_stops(facts):
        return None

    def at(k: int) -> Placement:
        return place(
            facts,
            machine.gpus,
            cpu_moe=0,
            n_gpu_layers=k,
            context=context,
            margins=machine.margins,
        )

    def fits(k: int) -> bool:
        return gpus_fit(forecast_on(facts, at(k), context, machine, use_mmap=use_mmap))

    everything = facts.n_layer_all + 1
    if fits(everything):
        return None
    # Not by halves: a layer more can need less, where a compute buffer goes with it.
    return at(next((k for k in range(everything - 1, 0, -1) if fits(k)), 0))


def no_layer_split(
    facts: ModelFacts, machine: Machine, context: ContextSettings, *, use_mmap: bool = True
) -> str:
    """Why there is no layer split to compare with, as a sentence; "" where there is one."""
    if not machine.gpus:
        return tr("Without a GPU there is no layer split to compare with.")
    if not expert_stops(facts):
        return tr("This model has no experts to set apart: it is split by layers anyway.")
    if layer_split(facts, machine, context, use_mmap=use_mmap) is None:
        return tr("The whole model fits on the GPU: a layer split would be the same.")
    return ""
