"""What the engine says reaches the panes, also when one of them fails at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import NativeLog
from moelauncher.core.session_state import SessionState
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow


def test_a_fault_at_one_event_swallows_none_of_those_that_came_with_it(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    driver.session.launch()

    def fails(event: object) -> None:
        raise ZeroDivisionError

    with qtbot.captureExceptions() as caught:
        monkeypatch.setattr(driver.session._log, "take", fails)
        driver.engine.say(NativeLog(0, "info", "one"), NativeLog(0, "info", "two"))
        driver.loaded()
        driver.wait(lambda: driver.session.state is SessionState.READY)
    assert {kind for kind, *_ in caught} == {ZeroDivisionError}
    driver.close()
