"""How fast every stop will be: from bandwidths alone, and with a few measurements."""

from __future__ import annotations

import pytest

from moelauncher.core.auto_placement import Machine
from moelauncher.core.device_bandwidth import Bandwidths
from moelauncher.core.engine_protocol import ContextSettings
from moelauncher.core.forecast import RAM
from moelauncher.core.launch_plan import LaunchChoices
from moelauncher.core.measurement import StopSpeed
from moelauncher.core.speed_estimate import BANDWIDTH, MODEL, basis_of
from moelauncher.core.speed_outlook import speed_outlook
from moelauncher.core.speed_prediction import hardware_model
from moelauncher.core.tune_plan import TunePlan, tune_plan
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
