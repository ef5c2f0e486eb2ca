"""A reply that is being written is on the disk all the while."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.engine_protocol import TokenEvent
from moelauncher.gui.chats.reply_writer import ReplyWriter
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.launch()
    yield made
    made.close()


def stored_reply(driver: ScriptedWindow, chat_id: str) -> str:
    """What another process would find of the chat's last turn."""
    store = ChatStore.open(driver.paths.chats_file)
    try:
        chat = store.load(chat_id)
        return chat.conversation.path[-1].turn.text if chat and chat.conversation.path else ""
    finally:
        store.close()


def test_a_reply_in_progress_is_stored_every_second_and_no_word_puts_that_off(
    driver: ScriptedWindow,
) -> None:
    driver.session.send("Tell me of the sea.")
    writer = driver.session.findChild(ReplyWriter)
    assert writer is not None
    storing = writer.findChild(QTimer)
    assert storing is not None
    assert storing.isActive() and not storing.isSingleShot()
    assert storing.interval() <= 1000
    beats = storing.timerId()  # another one whenever a timer begins anew
    for count, word in enumerate(("It ", "is ", "deep"), 1):
        driver.engine.say(TokenEvent(0, word, "", count, 0.0))
        driver.wait(lambda word=word: word in driver.window.chat.view.toPlainText())
    assert storing.timerId() == beats
    chat_id = driver.session.chat.chat.id
    driver.wait(lambda: stored_reply(driver, chat_id) == "It is deep")
