"""gui/memory/planner.py: the plan follows what llama.cpp says, and what it says is of one piece."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import Cancelled
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.placement import Placement
from moelauncher.core.units import GIB, MIB
from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_truth_model(tmp_path_factory.mktemp("model"), "qwen3-30b-a3b-q4_k_m")


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, model: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, model)
    yield made
    made.close()


def told(compute_mib: int) -> DryRunResult:
    return DryRunResult(compute_bytes={"CUDA0": compute_mib * MIB, "RAM": 10 * MIB})


def rested(driver: ScriptedWindow) -> None:
    """llama.cpp has answered for the plan in view, and the advice is there."""
    planner = driver.session.planner
    driver.wait(
        lambda: (
            driver.plan.forecast.compute_source == "dry-run"
            and planner._advice is not None
            and planner._advice.basis.compute_source == "dry-run"
        )
    )


def test_memory_that_moves_each_second_does_not_keep_the_answer_from_coming(
    driver: ScriptedWindow,
) -> None:
    asked: list[int] = []
    answer = threading.Event()

    def slow(
        facts: object, placement: Placement, context: object, cancelled: Callable[[], bool]
    ) -> DryRunResult:
        asked.append(placement.cpu_moe)
        while not answer.wait(0.01):
            if cancelled():
                raise Cancelled
        return told(300)

    planner = driver.session.planner
    planner._dry_runs._services = replace(planner._dry_runs._services, dry_run=slow)
    driver.window.placement.slider.setValue(20)
    driver.wait(lambda: 20 in asked)
    for used_gib in (1.5, 2.5, 1.2):
        driver.see(used_gib)
        assert planner._rest.isActive(), "it is planned anew"
        driver.wait(lambda: not planner._rest.isActive())
    driver.window.placement.slider.setValue(21)
    driver.wait(lambda: 21 in asked)
    driver.see(1.8)
    driver.wait(lambda: not planner._rest.isActive())
    answer.set()
    rested(driver)
    assert asked[-2:] == [20, 21], "another stop is another question"


@pytest.mark.parametrize("compute_mib", [0, 150, 3000])
def test_auto_is_right_by_what_llama_cpp_says(
    driver: ScriptedWindow, qtbot: QtBot, compute_mib: int
) -> None:
    driver.answers = told(compute_mib)
    driver.session.planner.auto()
    rested(driver)
    qtbot.waitUntil(lambda: not driver.session.planner._rest.isActive())
    rested(driver)
    (gpu,) = driver.plan.forecast.gpus
    assert gpu.compute_bytes == compute_mib * MIB
    assert gpu.fits
    one_layer = 340 * MIB
    assert gpu.spare_bytes is not None
    assert gpu.spare_bytes < one_layer, "one layer fewer would not fit"


def test_sentence_and_verdict_agree(driver: ScriptedWindow) -> None:
    """Advice by the estimate is not shown beside numbers of the dry run."""
    driver.answers = told(0)
    driver.window.placement.slider.setValue(20)
    rested(driver)
    forecast = driver.plan.forecast
    assert ("over" in forecast.text) == (not forecast.gpus[0].fits)
    assert forecast.gpus[0].spare_bytes is not None


def test_a_dry_run_that_fails_leaves_the_formula_with_the_reason(driver: ScriptedWindow) -> None:
    driver.answers = DryRunResult(problem="llama.cpp did not answer within 10 s.")
    driver.window.placement.slider.setValue(30)
    driver.wait(lambda: driver.plan.forecast.note != "")
    assert driver.plan.forecast.compute_source == "estimate"
    assert driver.plan.forecast.gpus[0].compute_bytes > 0
    assert driver.window.memory.sentence.text() == "llama.cpp did not answer within 10 s."


def test_the_largest_context_is_offered_and_taken(driver: ScriptedWindow) -> None:
    driver.answers = told(300)
    driver.window.placement.slider.setValue(48)
    rested(driver)
    hint = driver.window.placement.hint
    assert hint.text().startswith("Largest context that fits: ")
    hint.click()
    largest = driver.plan.choices.context.n_ctx
    assert largest > 4096
    rested(driver)
    assert driver.plan.forecast.gpus[0].fits
    assert hint.text() == ""


def test_a_mark_that_is_dragged_moves_auto(driver: ScriptedWindow) -> None:
    driver.answers = told(300)
    driver.session.planner.auto()
    rested(driver)
    before = driver.plan.choices.cpu_moe
    driver.window.memory.gauge.leave_free_changed.emit("CUDA0", 3 * GIB)
    assert driver.plan.forecast.gpus[0].leave_free_bytes == 3 * GIB
    assert driver.plan.choices.cpu_moe > before


def test_what_helps_is_said_also_where_llama_cpp_did_not_answer(driver: ScriptedWindow) -> None:
    driver.answers = DryRunResult(problem="llama.cpp did not answer within 10 s.")
    driver.window.placement.slider.setValue(0)
    # Advice and dry run are two jobs: either may answer first.
    reason = "llama.cpp did not answer within 10 s."
    driver.wait(lambda: driver.plan.forecast.note == reason)
    driver.wait(lambda: "more layers to the CPU" in driver.plan.forecast.text)
    assert "more layers to the CPU" in driver.window.memory.sentence.text()


def test_auto_follows_a_machine_that_grew_tighter(driver: ScriptedWindow) -> None:
    driver.answers = told(300)
    driver.session.planner.auto()
    rested(driver)
    before = driver.plan.choices.cpu_moe
    driver.see(4)  # a game has started
    assert driver.plan.choices.cpu_moe > before
    assert driver.plan.forecast.gpus[0].fits
