"""The window closes while another program holds the chats: nothing that was said is lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtWidgets import QListView
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.session_state import SessionState
from tests.helpers.file_lock import held_by_another_program
from tests.helpers.kept_chats import stored_texts
from tests.helpers.window_driver import WindowDriver, sample_basedir


def test_a_locked_file_at_the_end_costs_no_text(
    qtbot: QtBot, tmp_path: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The usual two seconds a try would only make the test slow.
    monkeypatch.setattr(ChatStore, "open", partial(ChatStore.open, busy_s=0.05))
    base = sample_basedir(tmp_path / "base", session_cache)
    chats_file = base / "data" / "chats.sqlite3"

    first = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    first.launch()
    chat = first.program.session.chat
    # As a chat's first question it is answered until the context is full.
    first.ask("Count from one to one thousand, a number a line.")
    first.wait(lambda: len(chat.conversation.turns) == 2 and chat.conversation.turns[1].text != "")
    first.program.session.stop()
    first.wait_for_state(SessionState.READY)
    stored = _texts(chat.conversation)
    first.wait(lambda: stored_texts(chats_file) == stored)
    with held_by_another_program(chats_file):
        first.program.session.turns.act("go_on", chat.conversation.path[1].key)
        first.wait(lambda: "held by another program" in first.status_text())
        first.wait(lambda: len(_texts(chat.conversation)[1]) > len(stored[1]) + 40)
        first.close()
        said = chat.conversation
        (file,) = chats_file.parent.glob("*.rescue-*")
        assert stored_texts(chats_file) == stored

        still_held = WindowDriver(qtbot, ["--basedir", str(base)])
        still_held.wait(lambda: "held by another program" in still_held.status_text())
        still_held.close()
        assert list(chats_file.parent.glob("*.rescue-*")) == [file]

    second = WindowDriver(qtbot, ["--basedir", str(base)])
    second.wait(lambda: "is in your chats now." in second.status_text())
    second.wait(lambda: "cut off" in second.chat_text())
    again = second.program.session.chat.conversation
    assert (again.nodes, again.path) == (said.nodes, said.path)
    assert _texts(again)[1][:40] in second.chat_text()
    second.close()
    assert not list(chats_file.parent.glob("*.rescue-*"))

    third = WindowDriver(qtbot, ["--basedir", str(base)])
    third.wait(lambda: "cut off" in third.chat_text())
    listed = third.widget(QListView, "chatList")
    third.wait(lambda: listed.model().rowCount() == 1)
    assert third.program.session.chat.conversation.nodes == said.nodes
    assert third.program.session.chat.keeper.news == ""
    third.close()


def _texts(conversation) -> list[str]:  # type: ignore[no-untyped-def]
    return [turn.text for turn in conversation.turns]
