"""How fast every stop will be: from bandwidths alone, and with a few measurements."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.memory.placement import RAM
from moelauncher.core.speed.device_bandwidth import Bandwidths
from moelauncher.core.speed.measurement import StopSpeed
from moelauncher.core.speed.speed_estimate import BANDWIDTH, MODEL, basis_of
from moelauncher.core.speed.speed_outlook import expected_speed, speed_outlook
from moelauncher.core.speed.speed_prediction import hardware_model
from moelauncher.core.speed.tune_plan import TunePlan, tune_plan
from tests.helpers.planned_models import gpu, truth_facts

#: What somebody measured with an RTX 3060 (12 GB): expert layers on the CPU, tok/s.
PUBLISHED = {40: 38.5, 28: 42.6, 24: 44.3, 22: 45.4, 20: 46.9, 18: 48.2}


@pytest.fixture(scope="module")
def plan() -> TunePlan:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    machine = Machine((gpu(11.5, "RTX"),), ram_free_bytes=60 << 30)
    choices = LaunchChoices(40, None, "first", ContextSettings(n_ctx=4096), True)
    return tune_plan(facts, machine, choices)


def speeds(stops: list[int]) -> list[StopSpeed]:
    return [StopSpeed(stop, (PUBLISHED[stop],), (), 0) for stop in stops]


def test_bandwidths_alone_give_the_shape_and_the_size(plan: TunePlan) -> None:
    hardware = hardware_model(Bandwidths({RAM: 40e9, "RTX": 330e9}), ["RTX"])
    outlook = speed_outlook(plan, (), basis_of((), hardware))
    assert outlook.basis.kind == BANDWIDTH
    rates = [rate for rate in outlook.curve if rate is not None]
    assert len(rates) == 41
    assert rates == sorted(rates, reverse=True), "fewer layers on the CPU are never slower"
    for stop, rate in PUBLISHED.items():
        assert rates[stop] == pytest.approx(rate, rel=0.4)


@pytest.mark.parametrize("known", [[40, 18], [40, 28, 20], [28, 24, 22]])
def test_a_few_measurements_foretell_the_others(plan: TunePlan, known: list[int]) -> None:
    hardware = hardware_model(Bandwidths({RAM: 40e9, "RTX": 330e9}), ["RTX"])
    outlook = speed_outlook(plan, speeds(known), basis_of((), hardware))
    assert outlook.basis.kind == MODEL
    assert outlook.model.error < 0.02
    for stop, rate in PUBLISHED.items():
        assert outlook.curve[stop] == pytest.approx(rate, rel=0.08)


def test_one_measurement_moves_the_whole_curve(plan: TunePlan) -> None:
    outlook = speed_outlook(plan, speeds([28]), basis_of(()))
    assert outlook.curve[28] == pytest.approx(42.6)
    assert not outlook.fitted


def test_a_dense_model_has_layers_on_the_gpu(plan: TunePlan) -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    assert not plan.dense
    assert facts.expert_layers
    assert plan.index_of(7) == 7


def test_a_plan_says_what_to_expect_and_what_is_behind_it(plan: TunePlan) -> None:
    hardware = basis_of((), hardware_model(Bandwidths({RAM: 40e9, "RTX": 330e9}), ["RTX"]))
    stop = plan.stops[24]
    speed = expected_speed(plan.facts, stop.placement, stop.forecast, 4096, hardware)
    document = speed.to_json()
    assert document["basis"] == BANDWIDTH
    assert document["tok_s"] == pytest.approx(44.3, rel=0.3)
    assert document["vram_bytes"] > 1 << 30  # type: ignore[operator]
    assert 0 < document["bus_bytes"] < 1 << 20  # type: ignore[operator]
    assert "KiB cross the bus" in speed.text
    assert "about 5" in speed.text


def test_what_streams_from_the_disk_has_no_speed_to_tell(plan: TunePlan) -> None:
    little = tune_plan(
        plan.facts,
        Machine((gpu(11.5, "RTX"),), ram_free_bytes=4 << 30, ram_total_bytes=8 << 30),
        plan.stops[40].choices,
    )
    stop = little.stops[40]
    assert stop.forecast.streams_from_disk
    speed = expected_speed(little.facts, stop.placement, stop.forecast, 4096, basis_of(()))
    assert speed.tok_s is None
    assert "disk" in speed.text
    assert speed_outlook(little, (), basis_of(())).curve[40] is None
