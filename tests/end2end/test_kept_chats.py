"""Chats outlive the program: closed, or killed in the middle of a reply."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit, QListView, QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.chats.turn import TurnState
from moelauncher.core.session_state import SessionState
from tests.helpers import killed_window
from tests.helpers.kept_chats import stored_texts
from tests.helpers.window_driver import WindowDriver, sample_basedir


@pytest.fixture
def basedir(tmp_path: Path, session_cache: Path) -> Path:
    """A base folder with the sample model in its cache, and a greedy sampler."""
    return sample_basedir(tmp_path / "base", session_cache)


def test_branches_are_there_at_the_next_start(qtbot: QtBot, basedir: Path) -> None:
    first = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    first.launch()
    first.ask("What is the capital of France?")
    first.wait_for_state(SessionState.READY)
    chat = first.program.session.chat
    turns = first.program.session.turns
    turns.act("edit", chat.conversation.path[0].key)
    first.ask("What is the capital of Italy?")
    first.wait_for_state(SessionState.READY)
    assert "Rome" in first.chat_text()
    assert "Paris" not in first.chat_text(), "the other branch"
    turns.act("regenerate", chat.conversation.path[1].key)
    first.wait_for_state(SessionState.READY)
    assert [shown.n_versions for shown in chat.conversation.shown()] == [2, 2]
    kept = chat.conversation
    first.close()

    second = WindowDriver(qtbot, ["--basedir", str(basedir)])
    second.wait(lambda: "Italy" in second.chat_text())
    again = second.program.session.chat.conversation
    assert again.nodes == kept.nodes
    assert again.path == kept.path
    second.program.session.turns.act("older", again.path[0].key)
    assert "Paris" in second.chat_text()
    reply = again.nodes[2].turn
    assert (reply.label, reply.sampling is not None) == ("SmolLM2 135M MoE sample", True)
    assert reply.stats is not None and reply.placement_text
    second.close()


def test_list_search_delete_and_undo(qtbot: QtBot, basedir: Path) -> None:
    driver = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    driver.launch()
    titles = ("What is the capital of France?", "Name a colour.")
    for title in titles:
        driver.program.session.chat.new_chat()
        driver.ask(title)
        driver.wait_for_state(SessionState.READY)
    listed = driver.widget(QListView, "chatList").model()

    def rows() -> list[str]:
        return [listed.index(n, 0).data() for n in range(listed.rowCount())]

    driver.wait(lambda: rows() == [titles[1], titles[0]])
    driver.widget(QLineEdit, "chatSearch").setText("paris")
    driver.wait(lambda: rows() == [titles[0]])
    driver.widget(QLineEdit, "chatSearch").clear()
    driver.wait(lambda: len(rows()) == 2)
    driver.window.chats.delete_requested.emit(driver.program.session.chat.chat.id)
    driver.wait(lambda: rows() == [titles[0]])
    assert "colour" not in driver.chat_text()
    driver.window.chats.undo.undo()
    driver.wait(lambda: len(rows()) == 2 and "colour" in driver.chat_text())
    driver.close()


def test_a_reply_goes_on_while_another_chat_is_read(qtbot: QtBot, basedir: Path) -> None:
    driver = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    driver.launch()
    driver.ask("What is the capital of France?")
    driver.wait_for_state(SessionState.READY)
    listed = driver.widget(QListView, "chatList")
    driver.wait(lambda: listed.model().rowCount() == 1)
    session = driver.program.session
    session.chat.new_chat()
    driver.ask("Count from one to one thousand, a number a line.")
    story = session.chat.chat.id
    driver.wait_for_state(SessionState.GENERATING)
    driver.wait(lambda: listed.model().rowCount() == 2)

    listed.clicked.emit(listed.model().index(1, 0))
    driver.wait(lambda: "Paris" in driver.chat_text())
    away = session.chat.elsewhere
    assert away is not None and away.id == story
    n_chars = len(away.conversation.turns[-1].text)
    driver.wait(
        lambda: (
            (chat := session.chat.elsewhere) is not None
            and len(chat.conversation.turns[-1].text) > n_chars
        )
    )
    assert "one thousand" not in driver.chat_text()
    assert not driver.widget(QPushButton, "sendButton").isEnabled()
    driver.press("stopElsewhereButton")
    driver.wait_for_state(SessionState.READY)
    driver.ask("And of Italy?")
    driver.wait_for_state(SessionState.READY)
    assert "Rome" in driver.chat_text()

    session.chat.open_chat(story)
    driver.wait(lambda: session.chat.chat.id == story)
    reply = session.chat.conversation.last_reply
    assert reply is not None and reply.can_go_on and len(reply.text) > n_chars
    assert reply.text[:20].strip() in driver.chat_text()
    driver.close()


@pytest.mark.parametrize("looks", ["in_view", "elsewhere"])
def test_killed_in_the_middle_of_a_reply(qtbot: QtBot, basedir: Path, looks: str) -> None:
    database = basedir / "data" / "chats.sqlite3"
    process = killed_window.started(basedir, looks)
    assert process.stdout is not None
    kept: list[int] = [0]
    try:
        n_written = 0
        while len(kept) < 3:  # nothing, a part, and more of it
            before, n_written = n_written, int(process.stdout.readline())
            assert n_written >= before, "the reply ended, and was not kept while it was written"
            n_stored = sum(len(text) for text in stored_texts(database)[1:])
            if n_stored > kept[-1]:
                kept.append(n_stored)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()

    db = sqlite3.connect(database)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    driver = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    try:
        listed = driver.widget(QListView, "chatList")
        driver.wait(lambda: listed.model().rowCount() == 1)
        if looks == "elsewhere":
            assert "cut off" not in driver.chat_text()
            listed.clicked.emit(listed.model().index(0, 0))
        driver.wait(lambda: "cut off" in driver.chat_text())
        reply = driver.program.session.chat.conversation.last_reply
        assert reply is not None
        assert reply.state is TurnState.CUT
        assert len(reply.text) >= kept[-1]
        assert reply.text[:20] in driver.chat_text()

        driver.launch()
        driver.program.session.turns.act(
            "go_on", driver.program.session.chat.conversation.path[1].key
        )
        driver.wait_for_state(SessionState.GENERATING, SessionState.READY)
        driver.wait(
            lambda: len(driver.program.session.chat.conversation.turns[1].text) > len(reply.text)
        )
        driver.program.session.stop()
        driver.wait_for_state(SessionState.READY)
        assert driver.program.session.chat.conversation.turns[1].text.startswith(reply.text)
    finally:
        driver.close()
