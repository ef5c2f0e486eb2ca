"""The model list in the built window: a second start, the card, verdicts, drops."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.machine import BackendDevice
from moelauncher.gui.library.model_list_model import ModelListModel
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.window_driver import WindowDriver, settings_file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "models"
    write_tiny_model(place / "a.gguf", "moe", name="Alpha")
    return place


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, folder: Path) -> Iterator[WindowDriver]:
    base = tmp_path / "base"
    settings_file(base, f"[models]\nfolders = ['{folder}']\n")
    shown = WindowDriver(qtbot, ["--basedir", str(base)])
    try:
        shown.wait(lambda: len(shown.window.model_list.entries()) == 1)
        yield shown
    finally:
        shown.close()


def test_a_second_start_selects_its_model_in_the_running_window(
    driver: WindowDriver, tmp_path: Path
) -> None:
    other = write_tiny_model(tmp_path / "elsewhere" / "b.gguf", "dense", name="Beta")
    second = subprocess.Popen(
        [sys.executable, "-m", "moelauncher", str(other), "--basedir", str(tmp_path / "base")],
        cwd=Path(__file__).parents[2],
    )
    driver.wait(lambda: second.poll() is not None)
    assert second.returncode == 0
    driver.wait(lambda: driver.window.heading.name.text() == "Beta")
    selected = driver.window.model_list.selected()
    assert selected is not None and selected.path == other


def test_the_card_of_the_selected_model_opens(driver: WindowDriver, folder: Path) -> None:
    button = driver.widget(QPushButton, "cardButton")
    assert not button.isEnabled()
    driver.window.model_list.select_path(folder / "a.gguf")
    driver.wait(button.isEnabled)
    driver.press("cardButton")
    driver.wait(lambda: driver.program.session.cards.dialog is not None)
    dialog = driver.program.session.cards.dialog
    assert dialog is not None
    assert dialog.name.text() == "Alpha"
    assert dialog.here_title.isVisible()
    assert any("not measured here yet" in label.text() for label in dialog.findChildren(QLabel))
    dialog.close()
    assert driver.program.session.cards.dialog is None
    # From the row's menu, for any model.
    driver.window.model_list.menus.card.emit(driver.window.model_list.entries()[0])
    driver.wait(lambda: driver.program.session.cards.dialog is not None)
    again = driver.program.session.cards.dialog
    assert again is not None
    again.close()
    # A reply's rate is remembered, and told from then on.
    plan = driver.program.session.planner.plan
    assert plan is not None
    stats = GenerationStats("stop", 10, 0, 100, 50.0, 38.4, 0.2, 3.0, 110)
    facts = driver.program.session.planner.facts
    assert facts is not None
    driver.program.session.speeds.note_reply(facts, plan, stats)
    driver.press("cardButton")
    driver.wait(lambda: driver.program.session.cards.dialog is not None)
    last = driver.program.session.cards.dialog
    assert last is not None
    assert any("38.4 tok/s in a chat here" in label.text() for label in last.findChildren(QLabel))
    expected = [label.text() for label in last.findChildren(QLabel) if "about " in label.text()]
    assert len(expected) == 1 and "tok/s (estimate from one reply on this machine" in expected[0]
    last.close()
    # The row tells it too.
    index = driver.window.model_list.list.currentIndex()
    spoken = str(index.data(Qt.ItemDataRole.AccessibleTextRole))
    assert "38 tok/s" in spoken


def test_rows_are_judged_in_the_built_window(driver: WindowDriver) -> None:
    def verdict() -> str:
        row = driver.window.model_list.list.model().index(0, 0).data(ModelListModel.ROW)
        return str(row.verdict)

    driver.wait(lambda: verdict() in ("fits in RAM, runs on the CPU", "fits on the GPU"))


def test_folders_that_are_dropped_are_added(driver: WindowDriver, tmp_path: Path) -> None:
    dropped = tmp_path / "dropped" / "deep"
    write_tiny_model(dropped / "c.gguf", "dense", name="Gamma")
    driver.window.paths_dropped.emit([tmp_path / "dropped"])
    driver.wait(lambda: driver.window.heading.name.text() == "Gamma")


def test_a_profile_changes_what_is_left_free_and_is_remembered(
    driver: WindowDriver, folder: Path
) -> None:
    driver.window.model_list.select_path(folder / "a.gguf")
    session = driver.program.session
    driver.wait(lambda: session.planner.facts is not None)
    # As if the build had a card; nothing is loaded onto it.
    session.machine.set_devices(
        [BackendDevice("CUDA0", "A card", "gpu", "CUDA", 11 << 30, 12 << 30)]
    )
    session.profiles.choose("gaming")
    assert driver.widget(QPushButton, "profileButton").text() == "Gaming ▾"
    assert session.machine._margins() == {"CUDA0": 4 << 30}
    session.profiles.save_as("video & sound")
    session.profiles._fill()
    texts = [action.text() for action in session.profiles.menu.actions()]
    assert texts == [
        "Usual", "Gaming", "All mine", "video && sound", "", "Save as…", "Delete “video && sound”"
    ]  # fmt: skip
    stored = driver.program._state.get("profiles")
    assert isinstance(stored, dict) and stored["chosen"] == "video & sound"
    session.profiles.delete("video & sound")
    assert driver.widget(QPushButton, "profileButton").text() == "Usual ▾"
