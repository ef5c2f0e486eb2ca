"""Before a load that RAM cannot hold: said once, with a way out, and never forbidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.errors import LauncherError, SettingsRefused
from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published model of 17 GiB: a header and holes."""
    return write_truth_model(tmp_path_factory.mktemp("model"), "qwen3-30b-a3b-q4_k_m")


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, model: Path) -> Iterator[ScriptedWindow]:
    """All experts in RAM, of which 8 GiB are free, and the file is not to be mapped."""
    made = ScriptedWindow(qtbot, tmp_path, model)
    made.see(ram_free_gib=8)
    pane = made.window.placement
    pane.slider.setValue(48)
    pane.more.mmap.setChecked(False)
    pane.options_changed.emit()
    yield made
    made.close()


def offer(driver: ScriptedWindow) -> QPushButton:
    found = driver.window.findChild(QPushButton, "offerButton")
    assert found is not None
    return found


def test_the_gauge_says_beforehand_what_would_help(driver: ScriptedWindow) -> None:
    assert driver.plan.forecast.mapping_would_help
    text = driver.plan.forecast.text
    assert "over on RAM" in text
    assert "Switch “Map model files” on" in text


def test_launch_says_it_and_offers_to_map_the_file(driver: ScriptedWindow) -> None:
    driver.session.launch()
    assert driver.engine.loads == []
    said = driver.window.status.message.text()
    assert "of RAM, and 8.0 GiB is free" in said
    assert "Launch again to load it all the same." in said
    offer(driver).click()
    (request,) = driver.engine.loads
    assert request.use_mmap
    assert driver.window.placement.more.mmap.isChecked()


def test_a_second_press_loads_all_the_same(driver: ScriptedWindow) -> None:
    driver.session.launch()
    driver.session.launch()
    (request,) = driver.engine.loads
    assert not request.use_mmap


def test_another_plan_is_doubted_anew(driver: ScriptedWindow) -> None:
    driver.session.launch()
    driver.window.placement.slider.setValue(47)
    driver.session.launch()
    assert driver.engine.loads == []


def test_what_fits_or_streams_is_loaded_at_once(driver: ScriptedWindow) -> None:
    driver.window.placement.more.mmap.setChecked(True)
    driver.window.placement.options_changed.emit()
    assert driver.plan.forecast.streams_from_disk
    driver.session.launch()
    assert len(driver.engine.loads) == 1


def test_caches_that_ram_cannot_hold_are_said_without_an_offer(driver: ScriptedWindow) -> None:
    driver.see(ram_free_gib=0.001)
    driver.session.launch()
    assert driver.engine.loads == []
    assert "Launch again" in driver.window.status.message.text()
    assert not offer(driver).isVisible()


@pytest.mark.parametrize(("kind", "marks"), [(SettingsRefused, False), (LauncherError, True)])
def test_only_a_refused_file_is_marked_in_the_list(
    driver: ScriptedWindow,
    kind: type[LauncherError],
    marks: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marked: list[Path] = []
    monkeypatch.setattr(driver.session.library, "refuse", lambda path, text: marked.append(path))
    driver.session.planner.refused.emit(kind("Not so.", "Choose a smaller context."))
    assert bool(marked) is marks
    assert driver.window.status.message.text() == "Not so. Choose a smaller context."
