"""A graphics driver that never answers holds nothing up: neither the window nor its end."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.app import rooms
from moelauncher.core.helper_python import helper_python
from moelauncher.engine.child import Child
from tests.helpers.window_driver import WindowDriver

#: Stands in for the helper process while a driver in it hangs.
HANGS = (helper_python(), "-c", "import time; time.sleep(600)")


def test_closing_takes_away_what_a_meter_waits_for(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rooms, "Child", partial(Child, command=HANGS))
    driver = WindowDriver(qtbot, ["--basedir", str(tmp_path / "base")])
    try:
        driver.wait(lambda: driver.program._rooms.child.pid is not None)
    finally:
        driver.close()
    assert "left behind" not in caplog.text
