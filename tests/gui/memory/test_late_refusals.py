"""A load that was begun before the GPU had said which of the model's weights it refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.load_comparison import LoadComparison
from moelauncher.core.memory.weight_probes import MUL_MAT, RefusedWeights, weight_probes
from moelauncher.core.session_state import SessionState
from tests.helpers.scripted_session import MIB, ScriptedWindow
from tests.helpers.truth_models import write_truth_model


class Card:
    """It refuses the output layer, and says so when it is let."""

    def __init__(self) -> None:
        self.speaks = threading.Event()

    def __call__(self, facts: ModelFacts, gpus: Sequence[str]) -> RefusedWeights:
        assert self.speaks.wait(20)
        (probe,) = [
            probe for probe, names in weight_probes(facts).items() if "output.weight" in names
        ]
        assert probe.operation == MUL_MAT
        return dict.fromkeys(gpus, (probe,))


@pytest.fixture
def card() -> Card:
    return Card()


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, card: Card) -> Iterator[ScriptedWindow]:
    model = write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m")
    made = ScriptedWindow(qtbot, tmp_path, model, refused=card)
    yield made
    card.speaks.set()
    made.close()


def output_mib(driver: ScriptedWindow) -> float:
    facts = driver.session.planner.facts
    assert facts is not None
    return sum(t.n_bytes for t in facts.tensors if t.name == "output.weight") / MIB


def comparison(driver: ScriptedWindow) -> LoadComparison:
    made = driver.session.outcome.accounts.comparison
    assert made is not None
    return made


def launch(driver: ScriptedWindow, **off_mib: float) -> None:
    driver.session.launch()
    driver.loaded(**off_mib)
    driver.wait(lambda: driver.session.state is SessionState.READY)


def let_speak(driver: ScriptedWindow, card: Card) -> None:
    with driver.signal(driver.session.machine.weights_told):
        card.speaks.set()


def test_what_the_card_refuses_is_no_fault_of_the_forecast(
    driver: ScriptedWindow, card: Card
) -> None:
    launch(driver, weights=-output_mib(driver))
    (request,) = driver.engine.loads
    assert request.expected_gpu_weights == {}, "nobody knows yet what will be there"
    assert comparison(driver).wrong == ()
    assert "forecast was off" not in driver.window.status.message.text()
    let_speak(driver, card)
    (row,) = [
        row for row in comparison(driver).rows if (row.device, row.kind) == ("CUDA0", "weights")
    ]
    assert row.source == "header"
    assert row.difference_bytes == pytest.approx(0, abs=1)
    assert "forecast was off" not in driver.window.status.message.text()


def test_what_is_wrong_all_the_same_is_said_then(driver: ScriptedWindow, card: Card) -> None:
    launch(driver)
    assert comparison(driver).wrong == ()
    let_speak(driver, card)
    assert comparison(driver).wrong
    assert "the forecast was off (CUDA0 weights +" in driver.window.status.message.text()


def test_an_answer_during_the_load_is_in_time(driver: ScriptedWindow, card: Card) -> None:
    plan = driver.plan
    driver.session.launch()
    let_speak(driver, card)
    driver.loaded(plan, weights=-output_mib(driver))
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert comparison(driver).wrong == ()
    assert {row.source for row in comparison(driver).rows if row.kind == "weights"} == {"header"}
