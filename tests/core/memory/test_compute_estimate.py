"""The estimate of compute buffers, against dry runs of llama.cpp itself and published logs."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.compute_estimate import estimate_compute_bytes, output_buffer_bytes
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.tensor_split import split_for_counts
from tests.helpers.planned_models import MIB, gpu, made_facts, truth_facts

#: Vulkan0 compute buffers of dry runs in MiB, on a device that left the logits to the CPU.
WITHOUT_LOGITS = [
    ("qwen3-30b-a3b-q4_k_m", 4096, 512, 88.01),
    ("qwen3-30b-a3b-q4_k_m", 32768, 512, 116.01),
    ("gpt-oss-20b-mxfp4", 4096, 512, 93.27),
    ("gpt-oss-20b-mxfp4", 131072, 512, 215.51),
    ("gpt-oss-20b-mxfp4", 4096, 128, 23.19),
    ("deepseek-v2-lite-q4_0", 4096, 512, 80.14),
]


#: The same with experts on the CPU: a copy of their largest tensor is in it.
WITH_COPIES = [
    ("deepseek-v2-lite-q4_0", 4096, 512, 155.51),
]


def _first_card_mib(name: str, n_ctx: int, n_ubatch: int, which: str) -> float:
    """The first of two cards: all layers but the last, and no output layer."""
    facts = truth_facts(name)
    split = split_for_counts((facts.n_layer_all - 1, 2))
    # One layer's experts on the CPU: on the first card, or on the second.
    placement = place(
        facts, [gpu(80, "A"), gpu(80, "B")], cpu_moe=1, which=which, tensor_split=split
    )
    context = ContextSettings(n_ctx=n_ctx, n_ubatch=n_ubatch)
    return estimate_compute_bytes(facts, placement, context)[0] / MIB


@pytest.mark.parametrize(("name", "n_ctx", "n_ubatch", "said_mib"), WITHOUT_LOGITS)
def test_layers_alone_are_within_a_tenth_of_the_dry_run(
    name: str, n_ctx: int, n_ubatch: int, said_mib: float
) -> None:
    estimate = _first_card_mib(name, n_ctx, n_ubatch, which="last")
    assert estimate == pytest.approx(said_mib, rel=0.1)


@pytest.mark.parametrize(("name", "n_ctx", "n_ubatch", "said_mib"), WITH_COPIES)
def test_copies_of_expert_weights_are_in_it(
    name: str, n_ctx: int, n_ubatch: int, said_mib: float
) -> None:
    estimate = _first_card_mib(name, n_ctx, n_ubatch, which="first")
    assert estimate == pytest.approx(said_mib, rel=0.1)


def test_a_short_ubatch_copies_no_experts() -> None:
    moved = _first_card_mib("qwen3-30b-a3b-q4_k_m", 4096, 16, which="first")
    assert moved == _first_card_mib("qwen3-30b-a3b-q4_k_m", 4096, 16, which="last")


def test_the_logits_are_on_the_output_layers_device() -> None:
    """The published log of this model on one card: 300.75 MiB."""
    facts = truth_facts("qwen3-coder-30b-a3b-q8_0")
    context = ContextSettings(n_ctx=65536)
    card, ram = estimate_compute_bytes(facts, place(facts, [gpu(80)], cpu_moe=0), context)
    assert card / MIB == pytest.approx(300.75, abs=0.01)
    # The mask and the embeddings of one ubatch wait in main memory.
    assert ram / MIB == pytest.approx(64 + 4, abs=0.1)
    alone = estimate_compute_bytes(facts, place(facts, [], cpu_moe=0), context)
    assert len(alone) == 1
    assert alone[0] > card


def test_the_output_buffer_equals_the_log_to_the_last_digit() -> None:
    """The published load of this model on one card: CUDA_Host output buffer, 0.77 MiB."""
    facts = truth_facts("gpt-oss-20b-mxfp4")
    assert f"{output_buffer_bytes(facts) / MIB:.2f}" == "0.77"


def test_several_cards_without_overrides_work_in_a_pipeline_of_four_inputs() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    context = ContextSettings(n_ctx=131072)
    cards = [gpu(80, "A"), gpu(80, "B")]
    piped = estimate_compute_bytes(facts, place(facts, cards, cpu_moe=0), context)
    one = estimate_compute_bytes(facts, place(facts, cards, cpu_moe=0, n_gpu_layers=48), context)
    assert piped[0] - one[0] == 3 * 131072 * 512 * 2


def test_a_card_without_layers_computes_nothing() -> None:
    facts = made_facts([(MIB, MIB)] * 4)
    placement = place(facts, [gpu(8, "A"), gpu(8, "B")], cpu_moe=1, tensor_split=[1, 0])
    assert estimate_compute_bytes(facts, placement, ContextSettings())[1] == 0


def test_attention_without_flash_attention_has_a_wider_mask() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    placement = place(facts, [], cpu_moe=0)
    context = ContextSettings(n_ctx=32768)
    wide = estimate_compute_bytes(facts, placement, context, flash_attention=False)[0]
    assert wide > estimate_compute_bytes(facts, placement, context)[0]
