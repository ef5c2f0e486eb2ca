"""After a crash one click selects the model and keeps more of it in RAM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.memory.safer_placement import safer_choices
from moelauncher.core.program.crash_watch import AbnormalEnd
from moelauncher.gui.memory.safer_start import SaferStart
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m")


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, model: Path) -> Iterator[ScriptedWindow]:
    window = ScriptedWindow(qtbot, tmp_path, model)
    yield window
    window.close()


def crash(model: Path, activity: str = "generating", cpu_moe: int | None = 20) -> AbnormalEnd:
    return AbnormalEnd("0.1.0", activity, model.name, str(model), cpu_moe, None, None)


def start(window: ScriptedWindow, before: AbnormalEnd) -> SaferStart:
    return SaferStart(window.session, window.window.status, before)


def test_selected_model_is_placed_a_quarter_further(window: ScriptedWindow, model: Path) -> None:
    window.window.placement.slider.setValue(5)
    safer = start(window, crash(model))
    assert safer.offered
    safer.take()
    assert window.plan.choices.cpu_moe == 20 + 12
    assert "32 of 48" in window.window.status.message.text()
    assert window.engine.loads == []


def test_other_model_is_selected_first(window: ScriptedWindow, tmp_path: Path, model: Path) -> None:
    other = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    window.select(other)
    start(window, crash(model)).take()
    window.select(model)
    assert window.plan.choices.cpu_moe == 32
    # Once: the user's own choices are left alone after that.
    window.window.placement.slider.setValue(3)
    window.select(other)
    window.select(model)
    assert window.plan.choices.cpu_moe == 3


@pytest.mark.parametrize("activity", ["ready", "selected", "", "unloading", "empty"])
def test_nothing_is_offered_where_no_placement_was_at_work(
    window: ScriptedWindow, model: Path, activity: str
) -> None:
    assert not start(window, crash(model, activity)).offered


def test_nothing_is_offered_of_a_model_that_is_gone(window: ScriptedWindow, tmp_path: Path) -> None:
    assert not start(window, crash(tmp_path / "gone.gguf")).offered
    assert not start(window, crash(Path())).offered


def test_what_is_safer(window: ScriptedWindow) -> None:
    plan = window.plan
    at_end = replace(plan, choices=replace(plan.choices, cpu_moe=48))
    assert safer_choices(plan, 47, None).cpu_moe == 48  # type: ignore[union-attr]
    smaller = safer_choices(at_end, 48, None)
    assert smaller is not None and smaller.context.n_ctx == plan.choices.context.n_ctx // 2
    tiny = replace(plan.choices, cpu_moe=48, context=replace(plan.choices.context, n_ctx=1024))
    assert safer_choices(replace(plan, choices=tiny), 48, None) is None
    # What the user has set meanwhile is not undone.
    careful = replace(plan, choices=replace(plan.choices, cpu_moe=40))
    assert safer_choices(careful, 10, None).cpu_moe == 40  # type: ignore[union-attr]


def test_dense_model_keeps_fewer_layers_on_the_gpu(qtbot: QtBot, tmp_path: Path) -> None:
    window = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "dense.gguf", "dense"))
    layers = window.plan.slider.gpu_layers
    found = safer_choices(window.plan, 0, layers)
    window.close()
    assert found is not None and found.n_gpu_layers == max(0, layers - 2)
