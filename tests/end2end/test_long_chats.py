"""A long chat that the last run of the program left is not read again in the next, and what is
kept of it goes with it."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from moelauncher.core.paths import app_paths
from moelauncher.core.session_state import SessionState
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.window_driver import WindowDriver, settings_file

LONG = "Whoever reads a long text twice has read it once too often. " * 24


def answered(driver: WindowDriver, text: str) -> int:
    """Ask; answers how many tokens of the prompt were there already."""
    chat = driver.program.session.chat
    before = len(chat.conversation.turns)
    driver.ask(text)
    driver.wait(lambda: len(chat.conversation.turns) == before + 2)
    driver.wait_for_state(SessionState.READY)
    reply = chat.conversation.last_reply
    assert reply is not None and reply.stats is not None
    assert reply.stats.prompt_tokens > 600
    return reply.stats.cached_tokens


def test_a_long_chat_is_opened_again(qtbot: QtBot, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "m" / "tiny.gguf", "hybrid")
    base = tmp_path / "base"
    settings_file(base, "[sampling]\ntemperature = 0.0\nmax_tokens = 4\n")
    arguments = [str(model), "--basedir", str(base)]
    first = WindowDriver(qtbot, arguments)
    try:
        first.launch()
        assert answered(first, LONG) < 64
    finally:
        first.close()
    second = WindowDriver(qtbot, arguments)
    try:
        second.launch()
        second.wait(lambda: len(second.program.session.chat.conversation.turns) == 2)
        assert answered(second, "And what follows?") > 500
    finally:
        second.close()


def test_what_is_kept_of_a_chat_comes_and_goes_by_clicks(qtbot: QtBot, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "m" / "tiny.gguf", "hybrid")
    base = tmp_path / "base"
    settings_file(base, "[sampling]\ntemperature = 0.0\nmax_tokens = 4\n")
    driver = WindowDriver(qtbot, [str(model), "--basedir", str(base)])
    folder = app_paths(base).chat_states_folder

    def kept() -> int:
        return len(list(folder.glob("*.state"))) if folder.exists() else 0

    try:
        driver.launch()
        answered(driver, LONG)
        chat = driver.program.session.chat
        left = chat.chat.id
        driver.window.chats.new.click()
        driver.wait(lambda: kept() == 1)
        driver.window.chats.open_requested.emit(left)
        driver.wait(lambda: chat.chat.id == left)
        turns = driver.program.session.turns
        turns.act("delete", chat.conversation.path[-1].key)
        driver.wait(lambda: kept() == 0)  # what holds the deleted reply
        turns.regenerate_last()
        driver.wait(lambda: len(chat.conversation.turns) == 2)
        driver.wait_for_state(SessionState.READY)
        driver.window.chats.new.click()
        driver.wait(lambda: kept() == 1)
        driver.window.chats.delete_requested.emit(left)
        driver.wait(lambda: kept() == 0)
        driver.window.chats.undo.undo()
        driver.wait(lambda: driver.window.chats.list.model().rowCount() == 1)
    finally:
        driver.close()
    assert kept() == 0
