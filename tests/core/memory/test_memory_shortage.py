"""After a load that failed for memory: the sentence, and what fits instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices, LaunchPlan, launch_plan
from moelauncher.core.memory.memory_shortage import (
    MemoryShortage,
    missing_bytes,
    next_that_fits,
    shortage_text,
)
from moelauncher.core.memory.placement import PlacementDevice
from tests.helpers.planned_models import GIB, MIB, made_facts, truth_facts

QWEN = "qwen3-30b-a3b-q4_k_m"


def machine(free_gib: float, ram_gib: float = 64) -> Machine:
    card = PlacementDevice("CUDA0", round(free_gib * GIB), 24 * GIB)
    return Machine((card,), ram_free_bytes=round(ram_gib * GIB), ram_total_bytes=64 * GIB)


def choices(stop: int, n_ctx: int = 4096, layers: int | None = None) -> LaunchChoices:
    return LaunchChoices(stop, layers, "first", ContextSettings(n_ctx=n_ctx), True)


def planned(facts: ModelFacts, stop: int, on: Machine, **more: int) -> LaunchPlan:
    return launch_plan(facts, choices(stop, **more), on)


def test_what_is_missing_is_what_the_plan_is_over() -> None:
    on = machine(12)
    plan = planned(truth_facts(QWEN), 0, on)
    (gpu,) = plan.forecast.gpus
    shortage = MemoryShortage("CUDA0", GIB, "weights")
    assert missing_bytes(shortage, plan) == gpu.used_bytes - 12 * GIB
    text = shortage_text(shortage, plan)
    assert text.startswith("CUDA0 is 6.")
    assert "GiB short: there was no room for the weights." in text


def test_where_the_plan_was_said_to_fit_the_refused_buffer_is_missing() -> None:
    plan = planned(truth_facts(QWEN), 48, machine(12))
    shortage = MemoryShortage("CUDA0", 300 * MIB, "compute")
    assert missing_bytes(shortage, plan) == 300 * MIB
    assert shortage_text(shortage, plan) == (
        "CUDA0 is 300 MiB short: there was no room for the compute buffers."
    )
    unknown = MemoryShortage("CUDA0", None)
    assert shortage_text(unknown, plan) == "CUDA0 has no memory left for the model."


def test_the_next_placement_is_the_nearest_that_fits() -> None:
    facts, on = truth_facts(QWEN), machine(12)
    plan = planned(facts, 0, on)
    found = next_that_fits(facts, plan, on, MemoryShortage("CUDA0", GIB, "weights"))
    assert found is not None
    assert found.context == plan.choices.context
    assert all(gpu.fits for gpu in launch_plan(facts, found, on).forecast.gpus)
    nearer = replace(found, cpu_moe=found.cpu_moe - 1)
    spare = launch_plan(facts, nearer, on).forecast.gpus[0].spare_bytes
    assert spare is not None
    assert spare < 64 * MIB, "one layer fewer would not fit, or hardly"


def test_a_plan_that_was_said_to_fit_and_did_not_is_never_offered_again() -> None:
    facts, on = truth_facts(QWEN), machine(12)
    auto = next_that_fits(facts, planned(facts, 0, on), on, MemoryShortage("CUDA0", GIB))
    assert auto is not None
    plan = launch_plan(facts, auto, on)
    again = next_that_fits(facts, plan, on, MemoryShortage("CUDA0", GIB))
    assert again is not None
    assert again.cpu_moe > auto.cpu_moe


def test_where_no_layer_helps_the_context_shrinks() -> None:
    facts, on = truth_facts(QWEN), machine(4)
    plan = planned(facts, 48, on, n_ctx=131072)
    found = next_that_fits(facts, plan, on, MemoryShortage("CUDA0", GIB, "kv"))
    assert found is not None
    assert (found.cpu_moe, found.context.n_ctx) == (48, 16384)


def test_where_nothing_helps_nothing_is_offered() -> None:
    facts, on = truth_facts(QWEN), machine(0.25)
    assert next_that_fits(facts, planned(facts, 0, on), on, MemoryShortage("CUDA0", GIB)) is None


def test_a_dense_model_keeps_fewer_layers_on_the_gpu() -> None:
    facts = made_facts([(GIB, 0)] * 20, arch="llama")
    on = machine(12)
    plan = planned(facts, 0, on, layers=21)
    found = next_that_fits(facts, plan, on, MemoryShortage("CUDA0", GIB, "weights"))
    assert found is not None
    assert found.n_gpu_layers == 12, "eleven blocks of 1 GiB, and the small output layer"


@pytest.mark.parametrize(("asked", "n_ctx"), [(GIB, 65536), (8 * GIB, 32768), (30 * GIB, None)])
def test_what_main_memory_refused_is_missing_next_time(asked: int, n_ctx: int | None) -> None:
    facts, on = truth_facts(QWEN), replace(machine(24), gpus=())
    unmapped = replace(choices(48, n_ctx=131072), use_mmap=False)
    plan = launch_plan(facts, unmapped, on)
    shortage = MemoryShortage("RAM", asked, "kv")
    assert shortage_text(shortage, plan).startswith("RAM is ")
    found = next_that_fits(facts, plan, on, shortage)
    assert (found and found.context.n_ctx) == n_ctx
