"""Chats reach the disk, one by one."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
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


def test_what_is_said_as_the_interpreter_ends_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite3"
    script = (
        "import atexit, sys\n"
        "from pathlib import Path\n"
        "from moelauncher.core.chats.conversation import Conversation\n"
        "from moelauncher.core.chats.kept_chat import KeptChat\n"
        "from moelauncher.gui.chats.chat_keeper import ChatKeeper\n"
        "keeper = ChatKeeper(Path(sys.argv[1]))\n"
        "keeper.save(KeptChat('early', Conversation().ask('one')))\n"
        "atexit.register(keeper.close)\n"
        "atexit.register(keeper.save, KeptChat('late', Conversation().ask('two')))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    store = ChatStore.open(path)
    assert {row.id for row in store.rows()} == {"early", "late"}
    store.close()


@pytest.fixture
def unsaved(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ChatKeeper, sqlite3.Connection]]:
    """A kept chat "a" whose second question waits: another program holds the file."""
    monkeypatch.setattr(ChatStore, "open", partial(ChatStore.open, busy_s=0.01))
    keeper = ChatKeeper(tmp_path / "chats.sqlite3")
    keeper.save(KeptChat("a", Conversation().ask("one")))
    with qtbot.waitSignal(keeper.rows_changed):
        keeper.refresh()
    other = sqlite3.connect(tmp_path / "chats.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with qtbot.waitSignal(keeper.message):
        keeper.save(KeptChat("a", Conversation().ask("one").ask("two")))
    yield keeper, other
    other.close()
    keeper.close()


def test_what_waits_is_what_is_exported(
    qtbot: QtBot, tmp_path: Path, unsaved: tuple[ChatKeeper, sqlite3.Connection]
) -> None:
    keeper, _ = unsaved
    with qtbot.waitSignal(keeper.message) as told:
        keeper.export("a", tmp_path / "rescued.md")
    assert told.args[1] == "good"
    assert "two" in (tmp_path / "rescued.md").read_text(encoding="utf-8")


def test_a_copy_is_made_of_what_waits_or_not_at_all(
    qtbot: QtBot, unsaved: tuple[ChatKeeper, sqlite3.Connection]
) -> None:
    keeper, other = unsaved
    with qtbot.assertNotEmitted(keeper.made), qtbot.waitSignal(keeper.rows_changed):
        keeper.duplicate("a")
    other.execute("ROLLBACK")
    with qtbot.waitSignal(keeper.made) as made:
        keeper.duplicate("a")
    assert "two" in made.args[0].conversation.turns[-1].text


def test_a_name_that_cannot_be_written_yet_is_kept_with_what_waits(
    qtbot: QtBot, tmp_path: Path, unsaved: tuple[ChatKeeper, sqlite3.Connection]
) -> None:
    keeper, other = unsaved
    with qtbot.waitSignal(keeper.rows_changed):
        keeper.rename("a", "Numbers")
    other.execute("ROLLBACK")
    keeper.close()
    store = ChatStore.open(tmp_path / "chats.sqlite3")
    assert [row.title for row in store.rows()] == ["Numbers"]
    store.close()


def test_what_waits_at_the_end_is_there_at_the_next_start(
    qtbot: QtBot, tmp_path: Path, unsaved: tuple[ChatKeeper, sqlite3.Connection]
) -> None:
    keeper, other = unsaved
    keeper.set_last_shown("a")
    keeper.close()
    other.execute("ROLLBACK")
    again = ChatKeeper(tmp_path / "chats.sqlite3")
    told: list[tuple[str, str]] = []
    again.message.connect(lambda *message: told.append(message))
    with qtbot.waitSignal(again.started) as started:
        again.start()
    again.close()
    (chat,) = started.args
    assert [turn.text for turn in chat.conversation.turns] == ["one\n\ntwo"]
    assert told == [(again.news, "warning")]
    assert again.news.endswith("is in your chats now.")
    assert not list(tmp_path.glob("*.rescue-*"))
