"""The verdict on two settings' answers, and what is measured as the noise between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.memory.place_model import place
from moelauncher.core.speed.answers_plan import AnswerChoices, answers_job, choices_text
from moelauncher.core.speed.same_answers import (
    AnswerSetting,
    Comparison,
    PromptAnswer,
    SameAnswers,
    context_for,
    format_kl,
    noise_setting,
    only_order_differs,
    verdict,
)
from tests.helpers.planned_models import MIB, gpu, made_facts

FACTS = made_facts([(20 * MIB, 0)] + [(20 * MIB, 480 * MIB)] * 23)
MACHINE = Machine(gpus=(gpu(64),))
CHOICES = LaunchChoices(8, None, "first", ContextSettings(n_ctx=32768), True)


def compared(kl: float, *, parted: int = 0, n: int = 4) -> Comparison:
    """``n`` answers of three tokens, ``parted`` of them parting at the second."""
    return Comparison(
        tuple(
            PromptAnswer(
                "Why?", ("a", "b", "c"), ("a", "b", "c"), 1 if index < parted else None, (kl,) * 3
            )
            for index in range(n)
        )
    )


@pytest.mark.parametrize(
    ("noise", "change", "parted", "order_only", "level", "words"),
    [
        (None, 0.0, 0, True, "same", "token for token"),
        (None, 1e-9, 0, True, "same", "token for token"),
        (None, 0.003, 2, True, "noise", "2 of 4 answers part, by rounding alone"),
        (None, 0.003, 0, True, "noise", "The texts are the same, by rounding alone"),
        (None, 0.8, 4, True, "differs", "compute wrongly"),
        (0.002, 0.003, 1, False, "noise", "1 of 4 answers part, but no further"),
        (0.002, 0.0015, 0, False, "same", "token for token"),
        (0.002, 0.005, 1, False, "slight", "2.5 times as far"),
        (0.002, 0.06, 4, False, "differs", "30 times as far"),
        (0.0, 0.003, 1, False, "slight", "would change nothing"),
        (0.0, 0.04, 4, False, "differs", "would change nothing"),
        (0.0, 1e-5, 1, False, "noise", "no further"),
    ],
)
def test_the_verdict(
    noise: float | None, change: float, parted: int, order_only: bool, level: str, words: str
) -> None:
    quiet = None if noise is None else compared(noise)
    found = SameAnswers(quiet, compared(change, parted=parted))
    told = verdict(found, order_only=order_only)
    assert told.level == level
    assert words in told.text


def test_figures_of_a_comparison() -> None:
    answers = (
        PromptAnswer("a", ("x",), ("x",), None, (0.0, 0.2)),
        PromptAnswer("b", ("x",), ("y",), 0, (0.4,)),
    )
    comparison = Comparison(answers)
    assert comparison.n_same == 1
    assert comparison.mean == pytest.approx(0.2)
    assert comparison.worst == 0.4
    assert Comparison(()).mean == 0.0
    assert format_kl(0.00123) == "0.0012"
    assert format_kl(0.0) == "0"


def setting(cpu_moe: int = 8, kv_type: str = "f16", flash: bool | None = None) -> AnswerSetting:
    context = ContextSettings(n_ctx=1024, kv_type=kv_type)
    placement = place(FACTS, MACHINE.gpus, cpu_moe=cpu_moe)
    return AnswerSetting(LoadRequest(Path("model.gguf"), placement, context), flash)


def test_a_change_of_place_is_the_noise_itself() -> None:
    assert only_order_differs(setting(8), setting(4))
    assert noise_setting(setting(8), setting(4), None) is None


@pytest.mark.parametrize("change", [setting(8, "q8_0"), setting(8, "f16", False)])
def test_another_kv_type_is_held_against_another_place(change: AnswerSetting) -> None:
    other = setting(9).placement
    noise = noise_setting(setting(8), change, other)
    assert noise == setting(9)


def test_the_changes_own_place_is_taken_where_it_has_one() -> None:
    noise = noise_setting(setting(8), setting(3, "q8_0"), setting(9).placement)
    assert noise == setting(3)


def test_without_a_gpu_other_kernels_make_the_noise() -> None:
    placement = place(FACTS, (), cpu_moe=0)
    here = setting()
    here = replace(here, request=replace(here.request, placement=placement))
    context = replace(here.request.context, kv_type="q4_0")
    change = replace(here, request=replace(here.request, context=context))
    noise = noise_setting(here, change, place(FACTS, (), cpu_moe=5))
    assert noise is not None
    assert noise.request.context.kv_type == "f16"
    assert noise.request.context.n_ubatch < here.request.context.n_ubatch
    assert noise.request.weights_fit_ram is not here.request.weights_fit_ram


def test_a_job_from_choices() -> None:
    changed = replace(CHOICES, context=replace(CHOICES.context, kv_type="q8_0"))
    job = answers_job(FACTS, MACHINE, AnswerChoices(CHOICES), AnswerChoices(changed, True))
    assert job.reference.request.context == context_for(CHOICES.context)
    assert job.reference.request.context.n_ctx == 1024
    assert (job.change.request.context.kv_type, job.change.flash_attention) == ("q8_0", True)
    assert job.noise is not None and job.noise.placement.cpu_moe == 9
    last = AnswerChoices(replace(CHOICES, cpu_moe=23))
    other = answers_job(FACTS, MACHINE, last, AnswerChoices(changed))
    assert other.noise is not None and other.noise.placement.cpu_moe == 8
    text = choices_text(AnswerChoices(changed, False), FACTS, has_gpu=True)
    assert text == "8 expert layers on the CPU, KV q8_0, flash attention off"
