"""From two sets of choices to a check of their answers.

In: facts, machine, what the user chose for each side. Out: :class:`AnswersJob`. Pure; any
thread; some milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.launch_plan import LaunchChoices, launch_plan
from moelauncher.core.memory.placement import Placement, expert_stops
from moelauncher.core.speed.same_answers import (
    AnswerSetting,
    AnswersJob,
    context_for,
    noise_setting,
)
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class AnswerChoices:
    """One side. ``flash_attention`` None: as llama.cpp chooses."""

    launch: LaunchChoices
    flash_attention: bool | None = None


def answers_job(
    facts: ModelFacts, machine: Machine, reference: AnswerChoices, change: AnswerChoices
) -> AnswersJob:
    """What to run, the noise between them included."""
    first, other = _setting(facts, machine, reference), _setting(facts, machine, change)
    return AnswersJob(
        first, other, noise_setting(first, other, _other_place(facts, machine, reference))
    )


def _setting(facts: ModelFacts, machine: Machine, choices: AnswerChoices) -> AnswerSetting:
    plan = launch_plan(facts, choices.launch, machine)
    return AnswerSetting(
        LoadRequest(
            facts.path,
            plan.placement,
            context_for(choices.launch.context),
            use_mmap=choices.launch.use_mmap,
            weights_fit_ram=not plan.forecast.streams_from_disk,
            expected_gpu_weights=plan.gpu_weights,
        ),
        choices.flash_attention,
    )


def _other_place(facts: ModelFacts, machine: Machine, choices: AnswerChoices) -> Placement | None:
    """One step further from the GPU, which takes no more of it than the reference."""
    launch = choices.launch
    last = len(expert_stops(facts))
    if last and launch.cpu_moe < last:
        other = replace(launch, cpu_moe=launch.cpu_moe + 1)
    elif last:
        other = replace(launch, cpu_moe=max(0, last - 1))
    else:
        everything = facts.n_layer_all + 1
        on_gpu = everything if launch.n_gpu_layers is None else launch.n_gpu_layers
        other = replace(launch, n_gpu_layers=on_gpu - 1 if on_gpu else 1)
    return launch_plan(facts, other, machine).placement


def choices_text(choices: AnswerChoices, facts: ModelFacts, *, has_gpu: bool) -> str:
    """ "24 expert layers on the CPU, KV f16, flash attention off": what one side is."""
    launch = choices.launch
    parts = []
    if has_gpu and expert_stops(facts):
        parts.append(tr("{n} expert layers on the CPU").format(n=launch.cpu_moe))
    elif has_gpu:
        on_gpu = facts.n_layer_all + 1 if launch.n_gpu_layers is None else launch.n_gpu_layers
        parts.append(tr("{n} layers on the GPU").format(n=on_gpu))
    parts.append(tr("KV {kv_type}").format(kv_type=launch.context.kv_type))
    if choices.flash_attention is not None:
        parts.append(
            tr("flash attention on") if choices.flash_attention else tr("flash attention off")
        )
    return ", ".join(parts)
