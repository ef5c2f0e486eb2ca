"""Auto: fits, and one layer fewer on the CPU would not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import (
    AutoPlacement,
    Machine,
    auto_placement,
    corrected,
    forecast_on,
    gpus_fit,
    helpful_text,
    largest_context_that_fits,
    place_at,
)
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import Placement, PlacementDevice
from tests.helpers.planned_models import GIB, MIB, gpu, made_facts, truth_facts

THREE = ("gpt-oss-20b-mxfp4", "qwen3-30b-a3b-q4_k_m", "qwen3.5-35b-a3b-20.61gib")


def _one_fewer_fits(
    facts: ModelFacts, machine: Machine, context: ContextSettings, chosen: AutoPlacement
) -> bool:
    fewer = place_at(
        facts, machine, context, chosen.placement.cpu_moe - 1, which=chosen.placement.which
    )
    return gpus_fit(forecast_on(facts, fewer, context, machine))


@pytest.mark.parametrize("which", ["first", "last"])
@pytest.mark.parametrize("n_ctx", [4096, 32768, 131072])
@pytest.mark.parametrize("card_gib", [12, 16, 24])
@pytest.mark.parametrize("name", THREE)
def test_the_fewest_layers_that_fit(name: str, card_gib: int, n_ctx: int, which: str) -> None:
    facts = truth_facts(name)
    machine = Machine((gpu(card_gib),), ram_free_bytes=32 * GIB)
    context = ContextSettings(n_ctx=n_ctx)
    chosen = auto_placement(facts, machine, context, which=which)
    if chosen.fits:
        assert gpus_fit(chosen.forecast)
        if chosen.placement.cpu_moe:
            assert not _one_fewer_fits(facts, machine, context, chosen)
    else:
        assert chosen.placement.cpu_moe == len(facts.expert_layers)
        assert chosen.largest_ctx is not None
        smaller = replace(context, n_ctx=chosen.largest_ctx)
        assert gpus_fit(forecast_on(facts, chosen.placement, smaller, machine))
        assert "shrink the context to" in chosen.forecast.text


@pytest.mark.parametrize("stop", [0, 1, 5, 6])
def test_a_card_that_holds_one_stop_to_the_byte_gets_that_one(stop: int) -> None:
    facts, context = made_facts([(MIB, 8 * MIB)] * 6), ContextSettings(n_ctx=256)
    wide = Machine((gpu(24),), ram_free_bytes=32 * GIB)
    card = forecast_on(facts, place_at(facts, wide, context, stop), context, wide).gpus[0]
    just = replace(wide.gpus[0], free_bytes=card.used_bytes + card.leave_free_bytes)
    chosen = auto_placement(facts, replace(wide, gpus=(just,)), context)
    assert (chosen.fits, chosen.placement.cpu_moe) == (True, stop)


def test_what_does_not_fit_at_all_is_said_with_the_largest_context() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    machine = Machine((gpu(12),), ram_free_bytes=32 * GIB)
    chosen = auto_placement(facts, machine, ContextSettings(n_ctx=131072))
    assert not chosen.fits
    assert chosen.largest_ctx == 40960  # trained for no more
    tiny = Machine((gpu(0.5),), ram_free_bytes=32 * GIB)
    nothing = auto_placement(facts, tiny, ContextSettings())
    assert (nothing.fits, nothing.largest_ctx) == (False, None)
    assert "neither more layers on the CPU nor a smaller context" in nothing.forecast.text


def test_without_a_gpu_everything_is_in_ram() -> None:
    facts = truth_facts("gpt-oss-20b-mxfp4")
    chosen = auto_placement(facts, Machine(ram_free_bytes=32 * GIB), ContextSettings())
    assert chosen.placement.cpu_moe == 24
    assert chosen.placement.patterns == ()
    assert chosen.forecast.fits
    assert chosen.forecast.spare_bytes == chosen.forecast.ram.spare_bytes


def test_two_cards_share_what_fits_on_neither() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    machine = Machine((gpu(9, "A"), gpu(7, "B")), ram_free_bytes=32 * GIB)
    context = ContextSettings(n_ctx=32768)
    chosen = auto_placement(facts, machine, context)
    assert chosen.fits
    assert set(chosen.placement.layer_devices) == {0, 1}
    assert not _one_fewer_fits(facts, machine, context, chosen)


def test_a_dense_model_gets_as_many_layers_as_fit() -> None:
    facts = made_facts([(500 * MIB, 0)] * 20, output_bytes=400 * MIB)
    machine = Machine((gpu(6),), ram_free_bytes=32 * GIB)
    context = ContextSettings()
    chosen = auto_placement(facts, machine, context)
    assert chosen.fits
    layers = chosen.placement.n_gpu_layers
    assert 0 < layers < 21
    more = place(facts, machine.gpus, cpu_moe=0, n_gpu_layers=layers + 1)
    assert not gpus_fit(forecast_on(facts, more, context, machine))


class _ScriptedDryRuns:
    """Says that compute takes ``extra`` bytes, and counts how often it was asked."""

    def __init__(self, compute_bytes: int) -> None:
        self.compute_bytes = compute_bytes
        self.asked: list[int] = []

    def __call__(self, placement: Placement) -> DryRunResult:
        self.asked.append(placement.cpu_moe)
        name = placement.devices[0].name
        return DryRunResult(compute_bytes={name: self.compute_bytes})


@pytest.mark.parametrize("compute_bytes", [0, 300 * MIB, 2 * GIB])
def test_dry_runs_correct_the_estimate_in_either_direction(compute_bytes: int) -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    machine = Machine((PlacementDevice("CUDA0", 12 * GIB),), ram_free_bytes=32 * GIB)
    context = ContextSettings()
    dry_runs = _ScriptedDryRuns(compute_bytes)
    chosen = auto_placement(facts, machine, context, dry_run_of=dry_runs)
    assert chosen.fits
    assert chosen.forecast.compute_source == "dry-run"
    assert chosen.forecast.gpus[0].compute_bytes == compute_bytes
    fewer = place_at(facts, machine, context, chosen.placement.cpu_moe - 1)
    assert not gpus_fit(forecast_on(facts, fewer, context, machine, dry_runs(fewer)))
    assert len(dry_runs.asked) < 12


def test_dry_runs_that_do_not_answer_leave_the_estimate() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    machine = Machine((PlacementDevice("CUDA0", 12 * GIB),), ram_free_bytes=32 * GIB)
    plain = auto_placement(facts, machine, ContextSettings())
    asked = auto_placement(facts, machine, ContextSettings(), dry_run_of=lambda _: None)
    assert asked == plain


def test_the_largest_context_that_fits() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    machine = Machine((gpu(16),), ram_free_bytes=32 * GIB)
    context = ContextSettings()
    placement = place(facts, machine.gpus, cpu_moe=14)
    largest = largest_context_that_fits(facts, placement, context, machine)
    assert largest is not None
    assert largest % 1024 == 0

    def fits(n_ctx: int) -> bool:
        return gpus_fit(forecast_on(facts, placement, replace(context, n_ctx=n_ctx), machine))

    assert fits(largest)
    assert not fits(largest + 1024)


def test_ram_bounds_the_context_where_the_cache_is_held_there() -> None:
    keys = {"embedding_length": 1024, "attention.head_count": 8, "attention.head_count_kv": 8}
    facts = made_facts([(MIB, 0)] * 16, keys=keys)
    small = Machine(ram_free_bytes=2 * GIB)
    placement = place(facts, (), cpu_moe=0)
    largest = largest_context_that_fits(facts, placement, ContextSettings(), small)
    assert largest is not None
    assert largest < 32768


def test_what_would_help_is_said() -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    machine = Machine((gpu(12),), ram_free_bytes=32 * GIB)
    context = ContextSettings(n_ctx=32768)
    fitting = auto_placement(facts, machine, context).placement.cpu_moe

    def text(stop: int, on: Machine = machine) -> str:
        placement = place_at(facts, on, context, stop)
        result = forecast_on(facts, placement, context, on)
        return helpful_text(facts, placement, context, on, result)

    assert "move 3 more layers to the CPU" in text(fitting - 3)
    assert "move one more layer to the CPU" in text(fitting - 1)
    assert ", or shrink the context to " in text(fitting - 3)
    assert text(fitting).startswith("Fits, ")
    assert "neither" in text(48, Machine((gpu(0.5),), ram_free_bytes=32 * GIB))


def test_a_dense_model_is_told_to_keep_fewer_layers() -> None:
    facts = made_facts([(500 * MIB, 0)] * 20)
    machine = Machine((gpu(6),), ram_free_bytes=32 * GIB)
    context = ContextSettings()
    placement = place(facts, machine.gpus, cpu_moe=0)
    result = forecast_on(facts, placement, context, machine)
    text = helpful_text(facts, placement, context, machine, result)
    assert "layers less on the GPU" in text


def _told(facts: ModelFacts, compute_gib: float):
    def dry_run(placement: Placement) -> DryRunResult:
        return DryRunResult(compute_bytes={"CUDA0": round(compute_gib * GIB), "RAM": 0})

    return dry_run


@pytest.mark.parametrize("compute_gib", [0.0, 0.2, 3.0])
def test_what_a_dry_run_told_corrects_the_neighbours(compute_gib: float) -> None:
    facts = truth_facts("qwen3-30b-a3b-q4_k_m")
    machine = Machine((PlacementDevice("CUDA0", 12 * GIB),), ram_free_bytes=64 * GIB)
    context = ContextSettings(n_ctx=8192)
    told = _told(facts, compute_gib)
    chosen = auto_placement(facts, machine, context, dry_run_of=told)
    assert chosen.fits
    assert chosen.largest_ctx is not None
    assert chosen.largest_ctx >= 8192, "what fits is no larger than the largest that fits"
    fewer = place_at(facts, machine, context, chosen.placement.cpu_moe - 3)
    over = forecast_on(facts, fewer, context, machine, told(fewer))
    text = helpful_text(facts, fewer, context, machine, over)
    assert "move 3 more layers to the CPU" in text
    nearby = corrected(facts, fewer, context, machine, over)
    again = auto_placement(facts, nearby, context)
    assert again.placement.cpu_moe == chosen.placement.cpu_moe
