"""The list of chats, over a file that another program holds."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow


def test_a_new_name_of_the_chat_in_view_is_tried_again_as_text_is(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChatStore, "open", partial(ChatStore.open, busy_s=0.01))
    window = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    try:
        window.session.launch()
        window.loaded()
        window.wait(lambda: window.session.state.value == "ready")
        window.session.send("hello")
        window.finished()
        window.wait(lambda: not window.session.chat.conversation.streaming)
        keeper = window.session.chat.keeper
        with qtbot.waitSignal(keeper.rows_changed):
            keeper.refresh()
        other = sqlite3.connect(window.paths.chats_file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with qtbot.waitSignal(keeper.message):
            window.window.chats.rename_requested.emit(window.session.chat.chat.id, "  A  name ")
        other.close()
        listed: list[list[str]] = []
        keeper.rows_changed.connect(lambda rows: listed.append([row.title for row in rows]))
        # When it is tried again is another matter. A list from before may still be on its way.
        keeper._retry.timeout.emit()
        window.wait(lambda: ["A name"] in listed)
    finally:
        window.close()
