"""Auto: the fewest expert layers on the CPU that fit, and the largest context that does.

In: facts, GPUs, context, margins, and the engine's dry runs where there are any. Out:
:class:`AutoPlacement`. Pure; any thread; some milliseconds (without dry runs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from moelauncher.core.memory.forecast import DryRunResult, forecast
from moelauncher.core.memory.forecast_text import over_full_text
from moelauncher.core.memory.kv_cache import CELL_PADDING
from moelauncher.core.memory.margins import Margins
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import Placement, PlacementDevice, expert_stops
from moelauncher.core.memory.weight_probes import RefusedWeights

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings

#: Asked for what llama.cpp itself says of a placement; None where it has not answered.
DryRunOf = Callable[[Placement], DryRunResult | None]

#: Contexts beyond this are offered in whole thousands (1024).
_ROUND_TOKENS = 1024
#: Where the file does not say how long the model was trained for.
_LONGEST_CONTEXT = 1 << 20


@dataclass(frozen=True)
class Machine:
    """What a plan is made for: the GPUs, main memory, and what is to stay free."""

    gpus: tuple[PlacementDevice, ...] = ()
    ram_free_bytes: int | None = None
    ram_total_bytes: int | None = None
    margins: Margins = field(default_factory=Margins)
    #: As far as it was asked: of the models that were looked at.
    refused_weights: RefusedWeights = field(default_factory=dict)


@dataclass(frozen=True)
class AutoPlacement:
    """Auto's answer. ``fits`` false: not even the last stop fits the GPUs."""

    placement: Placement
    forecast: MemoryForecast
    fits: bool
    #: The largest context that fits at this placement; None where none does.
    largest_ctx: int | None


def gpus_fit(result: MemoryForecast) -> bool:
    """Whether every GPU fits; main memory is judged apart, since weights may stream."""
    return all(device.fits for device in result.gpus)


def forecast_on(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    machine: Machine,
    dry_run: DryRunResult | None = None,
    *,
    use_mmap: bool = True,
) -> MemoryForecast:
    """The forecast of one placement on one machine."""
    return forecast(
        facts,
        placement,
        context,
        margins=machine.margins,
        ram_free_bytes=machine.ram_free_bytes,
        ram_total_bytes=machine.ram_total_bytes,
        dry_run=dry_run,
        use_mmap=use_mmap,
        refused_weights=machine.refused_weights,
    )


def stop_count(facts: ModelFacts) -> int:
    """Steps from everything on the GPU to everything that can leave it.

    Expert layers for a model with stops; for the others the blocks and the output layer.
    """
    return len(expert_stops(facts)) or facts.n_layer_all + 1


def place_at(
    facts: ModelFacts,
    machine: Machine,
    context: ContextSettings,
    step: int,
    *,
    which: str = "first",
    tensor_split: Sequence[float] | None = None,
) -> Placement:
    """The placement after ``step`` steps away from the GPU (see :func:`stop_count`)."""
    experts = len(expert_stops(facts))
    return place(
        facts,
        machine.gpus,
        cpu_moe=step if experts else 0,
        which=which,
        n_gpu_layers=None if experts else facts.n_layer_all + 1 - step,
        tensor_split=tensor_split,
        context=context,
        margins=machine.margins,
    )


def corrected(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    machine: Machine,
    result: MemoryForecast,
) -> Machine:
    """``machine`` as the estimate must see it to agree with ``result``, which a dry run told.

    What llama.cpp said for one placement beyond the estimate (or below it) is taken as said
    for its neighbours too: they differ by layers, and those the estimate knows exactly.
    """
    if result.compute_source != "dry-run":
        return machine
    estimate = forecast_on(facts, placement, context, machine)

    def seen(gpu: PlacementDevice, off_bytes: int) -> PlacementDevice:
        if gpu.free_bytes is None:
            return gpu
        return replace(gpu, free_bytes=max(0, gpu.free_bytes - off_bytes))

    gpus = tuple(
        seen(gpu, told.used_bytes - guessed.used_bytes)
        for gpu, told, guessed in zip(machine.gpus, result.gpus, estimate.gpus, strict=True)
    )
    return replace(machine, gpus=gpus)


def auto_placement(
    facts: ModelFacts,
    machine: Machine,
    context: ContextSettings,
    *,
    which: str = "first",
    tensor_split: Sequence[float] | None = None,
    dry_run_of: DryRunOf | None = None,
) -> AutoPlacement:
    """The fewest steps away from the GPU that fit all GPUs.

    The estimate finds the step; where dry runs are to be had they correct it, in either
    direction, so that at most a few are asked for. Without a GPU everything is in RAM.
    """
    last = stop_count(facts)

    def at(step: int, ask: DryRunOf | None = None) -> tuple[Placement, MemoryForecast]:
        placement = place_at(facts, machine, context, step, which=which, tensor_split=tensor_split)
        dry_run = ask(placement) if ask is not None else None
        return placement, forecast_on(facts, placement, context, machine, dry_run)

    step = last
    if machine.gpus:
        step = next((step for step in range(last + 1) if gpus_fit(at(step)[1])), last)
    chosen = at(step, dry_run_of)
    if dry_run_of is not None and machine.gpus:
        while step < last and not gpus_fit(chosen[1]):
            step += 1
            chosen = at(step, dry_run_of)
        while step > 0:
            fewer = at(step - 1, dry_run_of)
            if not gpus_fit(fewer[1]):
                break
            step, chosen = step - 1, fewer
    placement, result = chosen
    fits = gpus_fit(result)
    largest = largest_context_that_fits(facts, placement, context, machine, result)
    if not fits:
        text = over_full_text(result, more_layers=None, smaller_ctx=largest)
        result = replace(result, text=text)
    return AutoPlacement(placement, result, fits, largest)


def largest_context_that_fits(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    machine: Machine,
    result: MemoryForecast | None = None,
) -> int | None:
    """The largest context (up to the training length) whose forecast fits the GPUs.

    In main memory it is what must be held there that is judged, not the weights. None where
    not even the smallest context fits. ``result``: the forecast at the present context, by
    which the estimates are corrected where a dry run told it.
    """
    if result is not None:
        machine = corrected(facts, placement, context, machine, result)

    def fits(n_ctx: int) -> bool:
        result = forecast_on(facts, placement, replace(context, n_ctx=n_ctx), machine)
        return gpus_fit(result) and (result.ram.fits or result.streams_from_disk)

    longest = facts.ctx_train or _LONGEST_CONTEXT
    if fits(longest):
        return longest
    low, high = 0, longest // CELL_PADDING
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle * CELL_PADDING):
            low = middle
        else:
            high = middle
    found = low * CELL_PADDING
    if found > _ROUND_TOKENS:
        found -= found % _ROUND_TOKENS
    return found or None


def helpful_text(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    machine: Machine,
    result: MemoryForecast,
    *,
    explicit_split: bool = False,
) -> str:
    """What the user reads under the gauge: for an over-full plan, what would help.

    Some milliseconds: for a slider at rest, not for every pixel of a drag.
    """
    if gpus_fit(result) or not machine.gpus:
        return result.text
    experts = len(expert_stops(facts))
    last = stop_count(facts)
    now = placement.cpu_moe if experts else facts.n_layer_all + 1 - placement.n_gpu_layers
    split = placement.tensor_split if explicit_split else None
    machine = corrected(facts, placement, context, machine, result)
    more = next(
        (
            step - now
            for step in range(now + 1, last + 1)
            if gpus_fit(
                forecast_on(
                    facts,
                    place_at(
                        facts,
                        machine,
                        context,
                        step,
                        which=placement.which,
                        tensor_split=split,
                    ),
                    context,
                    machine,
                )
            )
        ),
        None,
    )
    smaller = largest_context_that_fits(facts, placement, context, machine)
    if smaller is not None and smaller >= context.n_ctx:
        smaller = None
    return over_full_text(result, more_layers=more, smaller_ctx=smaller, dense=not experts)
