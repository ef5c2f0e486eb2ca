"""Memory per device and kind, against published load logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.memory.compute_estimate import estimate_compute_bytes
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult, forecast
from moelauncher.core.memory.margins import (
    DRIVER_BYTES,
    DRIVER_VULKAN_BYTES,
    LEAVE_FREE_BYTES,
    Margins,
    default_leave_free,
)
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import PlacementDevice
from tests.helpers.planned_models import GIB, MIB, gpu, made_facts, truth_facts
from tests.helpers.truth_models import TRUTH_MODELS

NO_MARGINS = Margins({"RTX": 0, "A": 0, "B": 0}, {"RTX": 0, "A": 0, "B": 0})


def _mib(n_bytes: int) -> float:
    return n_bytes / MIB


@pytest.mark.parametrize("pretended", [True, False])
def test_c1_gpt_oss_with_all_experts_on_the_cpu(pretended: bool) -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    device = PlacementDevice("CUDA0", 8 * GIB, pretended=pretended)
    placement = place(facts, [device], cpu_moe=99)
    result = forecast(facts, placement, ContextSettings(n_ctx=131072))
    card = result.device("CUDA0")
    assert _mib(card.weights_bytes) == pytest.approx(1242.03, abs=0.03)
    assert card.expert_bytes == 0
    assert _mib(result.ram.weights_bytes) == pytest.approx(10294.17, abs=0.03)
    assert _mib(card.kv_bytes) == pytest.approx(3090.00, abs=0.01)
    assert result.ram.kv_bytes == 0


def test_on_a_cuda_device_the_weights_equal_the_log_to_the_last_digit() -> None:
    """CUDA rounds the rows of quantised tensors up; the log has it, the file has not."""
    facts = truth_facts("gpt-oss-20b-mxfp4")
    placement = place(facts, [PlacementDevice("CUDA0", 8 * GIB)], cpu_moe=99)
    result = forecast(facts, placement, ContextSettings())
    assert f"{_mib(result.device('CUDA0').weights_bytes):.2f}" == "1242.03"


def test_the_output_buffer_is_in_main_memory_before_the_dry_run_says_it_too() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    placement = place(facts, [PlacementDevice("CUDA0", 8 * GIB)], cpu_moe=99)
    context = ContextSettings(n_ctx=131072)
    *_, inputs_bytes = estimate_compute_bytes(facts, placement, context)
    buffer_bytes = 4 * 201088  # one logit for each token of the vocabulary
    expected = forecast(facts, placement, context)
    assert expected.ram.compute_bytes == inputs_bytes + buffer_bytes
    said = DryRunResult(compute_bytes={"RAM": inputs_bytes}, output_bytes=buffer_bytes)
    told = forecast(facts, placement, context, dry_run=said)
    assert told.ram.compute_bytes == expected.ram.compute_bytes


def test_c4_qwen3_coder_all_on_the_gpu() -> None:
    facts = truth_facts("qwen3-coder-30b-a3b-q8_0")
    placement = place(facts, [PlacementDevice("CUDA0", 80 * GIB)], cpu_moe=0)
    result = forecast(facts, placement, ContextSettings(n_ctx=65536))
    card = result.device("CUDA0")
    assert _mib(card.weights_bytes) == pytest.approx(30658.12, abs=0.03)
    assert _mib(result.ram.weights_bytes) == pytest.approx(315.30, abs=0.03)
    assert _mib(card.kv_bytes) == pytest.approx(6144.00, abs=0.01)
    # The published compute buffer is the logits' and the last hidden state's.
    assert _mib(card.compute_bytes) == pytest.approx(300.75, abs=0.01)


def test_c5_two_cards_with_all_experts_on_the_cpu() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    placement = place(facts, [gpu(9.6, "A"), gpu(30, "B")], cpu_moe=48, tensor_split=[9862, 31518])
    result = forecast(facts, placement, ContextSettings(n_ctx=16384))
    first, second, ram = result.devices
    assert _mib(first.weights_bytes) == pytest.approx(135.76, abs=0.03)
    assert _mib(second.weights_bytes) == pytest.approx(648.66, abs=0.03)
    assert _mib(ram.weights_bytes) == pytest.approx(16906.92, abs=0.03)
    assert _mib(first.kv_bytes) == pytest.approx(384.00, abs=0.01)
    assert _mib(second.kv_bytes) == pytest.approx(1152.00, abs=0.01)


def test_c12_deepseek_all_on_the_gpu() -> None:
    facts = truth_facts("deepseek-v2-lite-q4_0")
    result = forecast(facts, place(facts, [gpu(12)], cpu_moe=0), ContextSettings())
    assert _mib(result.gpus[0].weights_bytes) == pytest.approx(8376.26, abs=0.03)
    assert _mib(result.ram.weights_bytes) == pytest.approx(112.50, abs=0.03)
    assert _mib(result.gpus[0].kv_bytes) == pytest.approx(1080.00, abs=0.01)


def test_c18_and_c19_hybrid_state() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    placement = place(facts, [gpu(24)], cpu_moe=0)
    card = forecast(facts, placement, ContextSettings()).gpus[0]
    assert (_mib(card.kv_bytes), _mib(card.recurrent_bytes)) == (80.0, 62.8125)
    long = ContextSettings(n_ctx=262144, kv_type="q4_0")
    card = forecast(facts, placement, long).gpus[0]
    assert (_mib(card.kv_bytes), _mib(card.recurrent_bytes)) == (1440.0, 62.8125)


@pytest.mark.parametrize("name", TRUTH_MODELS)
def test_one_stop_more_to_the_cpu_never_raises_vram_and_loses_no_byte(name: str) -> None:
    facts = truth_facts(name)
    # An MTP block lies in the file, but is not loaded.
    total = sum(tensor.n_bytes for tensor in facts.tensors) - facts.not_loaded_bytes
    last = None
    for stop in range(len(facts.expert_layers) + 1):
        placement = place(facts, [gpu(12)], cpu_moe=stop)
        result = forecast(facts, placement, ContextSettings(n_ctx=32768))
        assert sum(device.weights_bytes for device in result.devices) == total
        used = result.gpus[0].used_bytes
        assert last is None or used <= last
        last = used


def _tied() -> object:
    return made_facts(
        [(MIB, 0)] * 4,
        tied_output=True,
        token_embd_bytes=64 * MIB,
        output_bytes=65 * MIB,
    )


def test_tied_embeddings_have_a_second_copy_beside_the_output_layer() -> None:
    facts = _tied()
    on_gpu = forecast(facts, place(facts, [gpu(8)], cpu_moe=0), ContextSettings())  # type: ignore[arg-type]
    assert on_gpu.gpus[0].dense_bytes == 4 * MIB + 65 * MIB
    assert on_gpu.ram.dense_bytes == 64 * MIB
    in_ram = forecast(facts, place(facts, [], cpu_moe=0), ContextSettings())  # type: ignore[arg-type]
    assert in_ram.ram.dense_bytes == 4 * MIB + 65 * MIB


@pytest.mark.parametrize(("arch", "copies"), [("gemma3", 1), ("gemma3n", 2), ("gemma4", 2)])
def test_a_tied_matrix_in_ram_is_copied_where_llama_cpp_does_not_see_it(
    arch: str, copies: int
) -> None:
    facts = replace(_tied(), arch=arch)
    placement = place(facts, [], cpu_moe=0)
    mapped, read = (
        forecast(facts, placement, ContextSettings(), use_mmap=use_mmap).ram.dense_bytes
        for use_mmap in (True, False)
    )
    assert mapped == 4 * MIB + 65 * MIB, "both are the same pages of the file"
    assert read == 4 * MIB + 65 * MIB + (copies - 1) * 64 * MIB


def test_mtp_blocks_are_counted_nowhere() -> None:
    facts = made_facts([(MIB, 8 * MIB)] * 4, n_not_loaded=1)
    result = forecast(facts, place(facts, [gpu(8)], cpu_moe=1), ContextSettings())
    assert result.gpus[0].dense_bytes == 3 * MIB + 10 * MIB
    assert result.gpus[0].expert_bytes == 16 * MIB
    assert result.ram.expert_bytes == 8 * MIB


def test_a_dense_models_layers_in_ram_take_their_kv_along() -> None:
    keys = {"embedding_length": 128, "attention.head_count": 2, "attention.head_count_kv": 2}
    facts = made_facts([(MIB, 0)] * 4, keys=keys)
    placement = place(facts, [gpu(8)], cpu_moe=0, n_gpu_layers=3)
    result = forecast(facts, placement, ContextSettings())
    assert result.gpus[0].kv_bytes == result.ram.kv_bytes > 0
    assert result.gpus[0].dense_bytes == 2 * MIB + 10 * MIB
    nothing = forecast(
        facts, place(facts, [gpu(8)], cpu_moe=0, n_gpu_layers=0), ContextSettings()
    ).gpus[0]
    assert nothing.used_bytes == 0
    assert nothing.leave_free_bytes == 0


def test_the_dry_runs_numbers_replace_formula_and_estimate() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    placement = place(facts, [PlacementDevice("CUDA0", 24 * GIB)], cpu_moe=0)
    answer = DryRunResult(
        kv_bytes={"CUDA0": 80 * MIB},
        recurrent_bytes={"CUDA0": 63 * MIB},
        compute_bytes={"CUDA0": 493 * MIB, "RAM": 12 * MIB},
        output_bytes=MIB,
        n_ctx=4096,
        flash_attention=True,
    )
    result = forecast(facts, placement, ContextSettings(), dry_run=answer)
    card = result.device("CUDA0")
    assert (card.kv_bytes, card.recurrent_bytes) == (80 * MIB, 63 * MIB)
    assert (card.compute_bytes, card.compute_source) == (493 * MIB, "dry-run")
    assert result.ram.compute_bytes == 13 * MIB
    assert (result.compute_source, result.note) == ("dry-run", "")


def test_a_dry_run_that_failed_leaves_the_formula_and_its_reason() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    placement = place(facts, [PlacementDevice("CUDA0", 24 * GIB)], cpu_moe=0)
    plain = forecast(facts, placement, ContextSettings())
    failed = DryRunResult(problem="The dry run took more than 10 s.")
    result = forecast(facts, placement, ContextSettings(), dry_run=failed)
    assert result.note == "The dry run took more than 10 s."
    assert result.devices == plain.devices
    assert result.compute_source == "estimate"


def test_a_pretended_card_is_never_judged_by_this_machines_dry_run() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    placement = place(facts, [gpu(12)], cpu_moe=0)
    answer = DryRunResult(compute_bytes={"RAM": 500 * MIB}, kv_bytes={"RAM": 114 * MIB})
    result = forecast(facts, placement, ContextSettings(), dry_run=answer)
    assert result.compute_source == "estimate"
    assert result.gpus[0].kv_bytes == 114 * MIB


def test_the_margin_and_the_drivers_share_are_kept_free() -> None:
    facts = made_facts([(100 * MIB, 0)] * 4, output_bytes=0)
    names = {"CUDA0": DRIVER_BYTES, "Vulkan0": DRIVER_VULKAN_BYTES}
    for name, driver_bytes in names.items():
        placement = place(facts, [PlacementDevice(name, GIB)], cpu_moe=0)
        card = forecast(facts, placement, ContextSettings()).device(name)
        assert card.driver_bytes == driver_bytes
        assert card.leave_free_bytes == LEAVE_FREE_BYTES
        assert card.spare_bytes == GIB - card.used_bytes - LEAVE_FREE_BYTES
    own = Margins({"CUDA0": 700 * MIB}, {"CUDA0": 0})
    placement = place(facts, [PlacementDevice("CUDA0", GIB)], cpu_moe=0)
    card = forecast(facts, placement, ContextSettings(), margins=own).device("CUDA0")
    assert (card.driver_bytes, card.leave_free_bytes) == (0, 700 * MIB)
    assert not card.fits
    assert default_leave_free(True) == 512 * MIB
    assert default_leave_free(False) == default_leave_free(None) == 256 * MIB


def test_unknown_free_memory_speaks_against_nothing() -> None:
    facts = made_facts([(100 * MIB, 0)] * 4)
    placement = place(facts, [PlacementDevice("CUDA0", None)], cpu_moe=0)
    result = forecast(facts, placement, ContextSettings())
    assert result.fits
    assert result.spare_bytes is None
    assert "not known" in result.text


def test_experts_that_do_not_fit_in_ram_stream_from_disk() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    placement = place(facts, [gpu(12)], cpu_moe=24)
    context = ContextSettings()
    result = forecast(facts, placement, context, ram_free_bytes=6 * GIB)
    assert result.streams_from_disk
    assert not result.fits
    assert result.gpus[0].fits
    assert "stream from disk" in result.text
    copied = forecast(facts, placement, context, ram_free_bytes=6 * GIB, use_mmap=False)
    assert not copied.streams_from_disk
    assert "over on RAM" in copied.text
    plenty = forecast(facts, placement, context, ram_free_bytes=32 * GIB)
    assert plenty.fits
    assert not plenty.streams_from_disk


def test_the_tightest_card_is_named() -> None:
    facts = made_facts([(100 * MIB, 0)] * 4)
    placement = place(facts, [gpu(8, "A"), gpu(0.1, "B")], cpu_moe=0, tensor_split=[1, 1])
    result = forecast(facts, placement, ContextSettings(), margins=NO_MARGINS)
    assert not result.fits
    assert result.spare_bytes == result.device("B").spare_bytes
    assert "over on B" in result.text
    with pytest.raises(KeyError):
        result.device("C")


def test_a_card_that_takes_nothing_is_not_the_tightest() -> None:
    facts = made_facts([(100 * MIB, 0)] * 4)
    placement = place(facts, [gpu(8, "A"), gpu(0, "B")], cpu_moe=0, tensor_split=[1, 0])
    result = forecast(facts, placement, ContextSettings(), margins=NO_MARGINS)
    assert result.fits
    assert result.spare_bytes == result.device("A").spare_bytes


def test_a_kv_type_that_the_model_cannot_have_is_noted() -> None:
    keys = {
        "embedding_length": 160,
        "attention.head_count": 2,
        "attention.head_count_kv": 2,
    }
    facts = made_facts([(MIB, 0)] * 4, keys=keys)
    placement = place(facts, [gpu(8)], cpu_moe=0)
    assert forecast(facts, placement, ContextSettings(kv_type="f16")).note == ""
    assert "80" in forecast(facts, placement, ContextSettings(kv_type="q8_0")).note
