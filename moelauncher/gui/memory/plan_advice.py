"""What is worked out for a plan while the slider rests. Pure; runs as a pool job.

In: the plan and the machine. Out: :class:`Advice`: what would help, and what else fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import (
    Machine,
    corrected,
    helpful_text,
    largest_context_that_fits,
)
from moelauncher.core.memory.launch_plan import LaunchPlan, launch_plan
from moelauncher.core.memory.memory_forecast import MemoryForecast


@dataclass(frozen=True)
class Advice:
    """What is worked out while the slider rests."""

    basis: MemoryForecast  # what it was worked out for
    text: str
    largest_ctx: int | None
    fits: tuple[bool | None, ...]


def advise(facts: ModelFacts, plan: LaunchPlan, machine: Machine) -> Advice:
    """The advice for ``plan``; nothing but its basis where the GPU is imagined."""
    choices = plan.choices
    basis = untold(plan.forecast)
    if plan.imagined_gpu:
        return Advice(basis, "", None, ())
    told = plan.forecast
    largest = largest_context_that_fits(facts, plan.placement, choices.context, machine, told)
    nearby = corrected(facts, plan.placement, choices.context, machine, told)
    fits: list[bool | None] = []
    if not plan.slider.dense:
        for stop in range(plan.slider.last + 1):
            at_stop = launch_plan(facts, replace(choices, cpu_moe=stop), nearby)
            fits.append(all(gpu.fits for gpu in at_stop.forecast.gpus))
    text = helpful_text(facts, plan.placement, choices.context, machine, told)
    return Advice(basis, text, largest, tuple(fits))


def untold(forecast: MemoryForecast) -> MemoryForecast:
    """The numbers alone: the sentence may be the advice's own."""
    return replace(forecast, text="")
