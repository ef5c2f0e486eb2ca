"""The built window among odd files and settings: it says so, and goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.session_state import SessionState
from tests.helpers.edited_gguf import edit_gguf
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.window_driver import WindowDriver, settings_file


@pytest.fixture
def drivers(qtbot: QtBot) -> Iterator[list[WindowDriver]]:
    """Programs that are closed in the end, whatever happens."""
    made: list[WindowDriver] = []
    yield made
    for driver in made:
        driver.close()


def can_launch(driver: WindowDriver) -> bool:
    return driver.widget(QPushButton, "launchButton").isEnabled()


def test_a_failure_is_not_said_of_the_next_model(
    qtbot: QtBot, tmp_path: Path, drivers: list[WindowDriver]
) -> None:
    good = write_tiny_model(tmp_path / "good.gguf", "moe")
    bad = edit_gguf(good, tmp_path / "bad.gguf", {".expert_used_count": 900})
    driver = WindowDriver(qtbot, [str(bad), "--basedir", str(tmp_path / "base")])
    drivers.append(driver)
    driver.wait(lambda: can_launch(driver))
    driver.launch()
    assert driver.program.session.state is SessionState.FAILED
    assert "refused this file" in driver.status_text()
    driver.program.session.library.add_paths([good])
    driver.wait(lambda: driver.program.session.state is SessionState.SELECTED)
    assert "refused" not in driver.status_text()


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_a_name_that_is_no_text_is_remembered(
    qtbot: QtBot, tmp_path: Path, drivers: list[WindowDriver]
) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    model = write_tiny_model(folder / os.fsdecode(b"m\xff.gguf"), "moe")
    for arguments in ([os.fspath(model)], []):
        driver = WindowDriver(qtbot, [*arguments, "--basedir", str(tmp_path / "base")])
        drivers.append(driver)
        driver.wait(lambda driver=driver: can_launch(driver))
        assert driver.program.session.planner.facts is not None
        assert driver.program.session.planner.facts.path == model
        driver.close()


def test_every_setting_that_is_not_used_is_named(
    qtbot: QtBot, tmp_path: Path, drivers: list[WindowDriver]
) -> None:
    settings_file(tmp_path / "base", "[engine]\nthreads = -1\n[context]\nsize = 0\n")
    driver = WindowDriver(qtbot, ["--basedir", str(tmp_path / "base")])
    drivers.append(driver)
    assert "engine.threads" in driver.status_text()
    assert "context.size" in driver.status_text()
