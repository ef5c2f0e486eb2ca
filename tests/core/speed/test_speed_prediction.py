"""What a token reads, and the model fitted to measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.speed.speed_prediction import (
    SpeedModel,
    TokenTraffic,
    fit_speed,
    token_traffic,
)
from tests.helpers.gguf_files import write_tiny_model

CONTEXT = ContextSettings(n_ctx=1024)
GPU = PlacementDevice("CUDA0", 12 << 30)


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return facts_of([read_header(write_tiny_model(tmp_path / "tiny.gguf", "moe"))])


def traffic(facts: ModelFacts, stop: int, depth: int = 0) -> TokenTraffic:
    placement = place(facts, [GPU], cpu_moe=stop)
    plan = forecast(facts, placement, CONTEXT)
    return token_traffic(facts, placement, plan, CONTEXT.n_ctx, depth)


def test_each_layer_moves_its_used_experts(facts: ModelFacts) -> None:
    share = facts.n_expert_used / facts.n_expert
    layer = next(one for one in facts.layers if one.holds_experts)
    before, after = traffic(facts, 0), traffic(facts, 1)
    assert after.ram_bytes - before.ram_bytes == pytest.approx(layer.expert_bytes * share)
    assert before.vram_bytes - after.vram_bytes == pytest.approx(
        layer.expert_bytes * share, rel=0.1
    )
    assert (before.hand_overs, after.hand_overs) == (0, 2)
    assert after.bus_bytes == 2 * 4 * (facts.n_embd or 0)


def test_depth_reads_more_of_the_cache(facts: ModelFacts) -> None:
    shallow, deep = traffic(facts, 0), traffic(facts, 0, 1024)
    kv = forecast(facts, place(facts, [GPU], cpu_moe=0), CONTEXT).gpus[0].kv_bytes
    assert deep.vram_bytes - shallow.vram_bytes == pytest.approx(kv)


def test_without_a_gpu_nothing_crosses_a_bus(facts: ModelFacts) -> None:
    placement = place(facts, [], cpu_moe=0)
    plan = forecast(facts, placement, CONTEXT)
    found = token_traffic(facts, placement, plan, CONTEXT.n_ctx, 0)
    assert (found.vram_bytes, found.bus_bytes, found.hand_overs) == (0, 0, 0)
    assert found.ram_bytes > 0


def big(stop: int) -> TokenTraffic:
    """A 35B-class model: 18 MiB of used experts a layer."""
    return TokenTraffic(2e9 - stop * 19e6, 2e8 + stop * 19e6, stop * 16e3, 2 * stop)


def test_the_fit_finds_what_it_was_made_from() -> None:
    truth = SpeedModel(1 / 45e9, 1 / 350e9, 1e-3, 60e-6, 0.0)
    measured = [(big(stop), truth.tok_s(big(stop))) for stop in (16, 20, 24, 30, 40)]
    model = fit_speed(measured)
    assert model is not None
    assert model.error < 0.01
    for stop in (18, 36):
        assert model.tok_s(big(stop)) == pytest.approx(truth.tok_s(big(stop)), rel=0.02)


def test_a_slow_machine_is_fitted_as_well() -> None:
    """Time for a token that is far from usual, as on a software device."""
    truth = SpeedModel(1 / 4e9, 1 / 5e9, 20e-3, 300e-6, 0.0)
    measured = [(big(stop), truth.tok_s(big(stop))) for stop in (9, 14, 24, 30)]
    model = fit_speed(measured)
    assert model is not None
    assert model.error < 0.03
    assert model.tok_s(big(20)) == pytest.approx(truth.tok_s(big(20)), rel=0.03)


def test_two_places_say_how_a_third_will_be() -> None:
    truth = SpeedModel(1 / 45e9, 1 / 350e9, 1e-3, 60e-6, 0.0)
    model = fit_speed([(big(stop), truth.tok_s(big(stop))) for stop in (20, 40)])
    assert model is not None
    assert model.tok_s(big(30)) == pytest.approx(truth.tok_s(big(30)), rel=0.05)


def test_one_place_says_nothing_of_others() -> None:
    assert fit_speed([]) is None
    assert fit_speed([(big(8), 40.0), (big(8), 41.0)]) is None
