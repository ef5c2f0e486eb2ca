"""A load that failed for want of memory: on which device, how much, and what fits instead.

In: what llama.cpp was refused, the plan, the machine. Out: sentences, and the next choices
that fit. Pure; any thread; some milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moelauncher.core.memory.launch_plan import LaunchChoices, launch_plan
from moelauncher.core.memory.placement import RAM
from moelauncher.core.translate import tr
from moelauncher.core.units import MIB, format_bytes

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.auto_placement import Machine
    from moelauncher.core.memory.launch_plan import LaunchPlan

#: What the next try leaves free beyond what was refused.
_STEP_BYTES = 64 * MIB


@dataclass(frozen=True)
class MemoryShortage:
    """What llama.cpp asked for and was refused. ``device`` is a GPU's name or "RAM"."""

    device: str
    asked_bytes: int | None  # the one buffer that was refused; None where it is not told
    part: str = ""  # "weights" | "kv" | "recurrent" | "compute" | ""


def missing_bytes(shortage: MemoryShortage, plan: LaunchPlan) -> int | None:
    """How much the device lacks for the plan; None where that cannot be known.

    By the plan where it is over what was free; else the buffer that was refused, since
    then the device had less to give than it said.
    """
    for device in plan.forecast.devices:
        if device.name == shortage.device and device.free_bytes is not None:
            over = device.used_bytes - device.free_bytes
            if over > 0:
                return over
    return shortage.asked_bytes


def shortage_text(shortage: MemoryShortage, plan: LaunchPlan) -> str:
    """Device and missing amount, in one sentence."""
    missing = missing_bytes(shortage, plan)
    part = _part_name(shortage.part)
    if missing is None:
        return tr("{device} has no memory left for {part}.").format(
            device=shortage.device, part=part
        )
    return tr("{device} is {size} short: there was no room for {part}.").format(
        device=shortage.device, size=format_bytes(missing), part=part
    )


def _part_name(part: str) -> str:
    return {
        "weights": tr("the weights"),
        "kv": tr("the KV cache"),
        "recurrent": tr("the recurrent state"),
        "compute": tr("the compute buffers"),
    }.get(part, tr("the model"))


def next_that_fits(
    facts: ModelFacts,
    plan: LaunchPlan,
    machine: Machine,
    shortage: MemoryShortage,
) -> LaunchChoices | None:
    """The choices nearest to the plan's that should load: more layers on the CPU, else a
    smaller context, else both; None where nothing helps.

    The device that failed gets a margin that this very plan would have broken.
    """
    strict = _stricter(plan, machine, shortage)

    def fits(choices: LaunchChoices) -> bool:
        forecast = launch_plan(facts, choices, strict).forecast
        return all(gpu.fits for gpu in forecast.gpus) and (
            forecast.ram.fits or forecast.streams_from_disk
        )

    sizes = [plan.choices.context.n_ctx]
    while sizes[-1] > 2048:
        sizes.append(sizes[-1] // 2)
    for n_ctx in sizes:
        context = replace(plan.choices.context, n_ctx=n_ctx)
        for choices in _fewer_on_gpu(plan, replace(plan.choices, context=context)):
            if choices != plan.choices and fits(choices):
                return choices
    return None


def _fewer_on_gpu(plan: LaunchPlan, choices: LaunchChoices) -> list[LaunchChoices]:
    """The same choices with ever less on the GPU, nearest first."""
    if plan.slider.dense:
        now = choices.n_gpu_layers or 0
        return [replace(choices, n_gpu_layers=n) for n in range(now, -1, -1)]
    return [replace(choices, cpu_moe=n) for n in range(choices.cpu_moe, plan.slider.last + 1)]


def _stricter(plan: LaunchPlan, machine: Machine, shortage: MemoryShortage) -> Machine:
    if shortage.device == RAM:
        spare = plan.forecast.ram.spare_bytes
        taken = max(spare or 0, 0) + (shortage.asked_bytes or 0) + _STEP_BYTES
        free = machine.ram_free_bytes
        return replace(machine, ram_free_bytes=None if free is None else max(0, free - taken))
    margins = machine.margins
    for device in plan.forecast.gpus:
        if device.name != shortage.device or device.spare_bytes is None:
            continue
        broken = device.leave_free_bytes + max(device.spare_bytes, 0) + _STEP_BYTES
        leave_free = {**margins.leave_free_bytes, device.name: broken}
        margins = replace(margins, leave_free_bytes=leave_free)
    return replace(machine, margins=margins)
