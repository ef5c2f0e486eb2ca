"""What is shown of a reply before its first token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import Finished, GenerationStats, PromptProgress, TokenEvent
from moelauncher.core.session_state import SessionState
from moelauncher.gui.chats import reply_desk
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

#: 1,000 tokens of prompt, 900 of them read at 90 tok/s.
LONG = GenerationStats("stop", 1000, 100, 9, 90.0, 30.0, 10.0, 11.0, 1009)


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.launch()
    made.session.send("Read this")
    made.engine.say(TokenEvent(0, "Done.", "", 1, 0.0), Finished(0, LONG))
    made.wait(lambda: made.session.state is SessionState.READY)
    yield made
    made.close()


def shown(driver: ScriptedWindow) -> str:
    return driver.window.chat.view.toPlainText()


def test_a_long_prompt_promises_a_time_from_how_the_last_one_was_read(
    driver: ScriptedWindow,
) -> None:
    driver.session.send("And this")
    driver.engine.say(PromptProgress(0, 0, 1_800_000, 0, 0.0))
    driver.wait(lambda: "0 of 1,800,000 tokens" in shown(driver))
    assert "about 5 h 33 min left" in shown(driver)
    driver.engine.say(PromptProgress(0, 900_000, 1_800_000, 0, 3600.0))
    driver.wait(lambda: "900,000 of" in shown(driver))
    assert "250 tok/s · 1 h left" in shown(driver)


def test_the_time_runs_on_while_llama_cpp_says_nothing(
    driver: ScriptedWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr(reply_desk, "time", SimpleNamespace(monotonic=lambda: now_s))
    driver.session.send("And this")
    driver.engine.say(PromptProgress(0, 400, 800, 0, 2.0))
    driver.wait(lambda: "2 s left" in shown(driver))
    now_s += 1.0
    driver.wait(lambda: "1 s left" in shown(driver))


def test_another_load_promises_nothing(driver: ScriptedWindow) -> None:
    driver.session.unload()
    driver.unloaded()
    driver.wait(lambda: driver.session.state is SessionState.SELECTED)
    driver.launch()
    driver.session.send("And this")
    driver.engine.say(PromptProgress(0, 0, 2000, 0, 0.0))
    driver.wait(lambda: "0 of 2,000 tokens" in shown(driver))
    assert "left" not in shown(driver)
