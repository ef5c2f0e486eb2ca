"""Chats reach the disk, one by one."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.gui.chats.chat_keeper import ChatKeeper


def test_a_chat_that_cannot_be_saved_does_not_hold_the_others_back(
    qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "chats.sqlite3"
    keeper = ChatKeeper(path)
    # No JSON value: nothing that a file or the window could bring in.
    keeper.save(KeptChat("bad", Conversation().ask("lost"), "", {"odd": object()}))
    keeper.save(KeptChat("good", Conversation().ask("kept")))
    with qtbot.waitSignal(keeper.message) as told:
        keeper.refresh()
    assert told.args[1] == "error"
    keeper.close()
    store = ChatStore.open(path)
    assert [row.id for row in store.rows()] == ["good"]
    store.close()
