"""What is set for one chat is used for its replies, kept with it, and for no other chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from moelauncher.core.session_state import SessionState
from moelauncher.gui.chat_settings_dialog import ChatSettingsDialog
from tests.helpers.window_driver import WindowDriver, sample_basedir


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, session_cache: Path) -> Iterator[WindowDriver]:
    base = sample_basedir(tmp_path / "base", session_cache)
    made = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    try:
        made.launch()
        yield made
    finally:
        made.close()


def test_settings_of_one_chat(driver: WindowDriver) -> None:
    driver.press("chatSettingsButton")
    dialog = driver.window.findChild(QDialog, "chatSettings")
    assert isinstance(dialog, ChatSettingsDialog)
    dialog.prompt.setPlainText("You are a helpful assistant.")
    dialog.numbers["max_tokens"].setText("many")
    dialog.accept()
    assert dialog.isVisible()
    assert "“many” cannot be used" in dialog.problem.text()
    dialog.numbers["max_tokens"].setText("5")
    dialog.numbers["seed"].setText("7")
    dialog.accept()
    driver.ask("Tell me a story.")
    driver.wait_for_state(SessionState.READY)
    chat = driver.program.session.chat
    reply = chat.conversation.last_reply
    assert reply is not None and reply.stats is not None and reply.sampling is not None
    assert (reply.stats.completion_tokens, reply.stats.finish_reason) == (5, "length")
    assert reply.sampling.seed == 7
    assert chat.conversation.messages()[0].content == "You are a helpful assistant."
    kept = chat.chat
    chat.new_chat()
    assert (dict(chat.chat.settings), chat.conversation.system) == ({}, "")
    chat.open_chat(kept.id)
    driver.wait(lambda: chat.chat.id == kept.id)
    assert chat.chat.settings == {"max_tokens": 5, "seed": 7}
    assert chat.conversation.system == "You are a helpful assistant."
