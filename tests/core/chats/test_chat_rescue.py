"""What the end of the program cannot store is in the store after the next start, once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.chats.chat_rescue import ChatRescue
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.rescue_file import find_rescues
from moelauncher.core.errors import LauncherError
from tests.helpers.kept_chats import Clock, kept, reopened

IN_CHATS = "Text that could not be stored when the program was last closed is in your chats now."
STORED = kept("a", ("one", "two"))
LONGER = replace(STORED, conversation=STORED.conversation.ask("three"))


@pytest.fixture
def lock(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's hold on the file, from ``BEGIN IMMEDIATE`` on."""
    path.parent.mkdir(exist_ok=True)
    other = sqlite3.connect(path, isolation_level=None)
    yield other
    other.close()


@pytest.fixture
def rescue(path: Path) -> ChatRescue:
    return ChatRescue(path, now=Clock())


def end_locked(
    path: Path, lock: sqlite3.Connection, chat: KeptChat, before: KeptChat | None = None
) -> Path:
    """A run that kept ``before`` and cannot keep ``chat``; the file that it leaves."""
    store = ChatStore.open(path, now=Clock(), busy_s=0.01)
    if before is not None:
        store.save(before)
    lock.execute("BEGIN IMMEDIATE")
    with pytest.raises(LauncherError, match="held by another program"):
        store.save(chat)
    file = ChatRescue(path, now=Clock()).leave(store, [chat], shown=chat.id)
    lock.execute("ROLLBACK")
    store.close()
    assert file is not None
    return file


def texts(store: ChatStore, chat_id: str) -> list[str]:
    chat = store.load(chat_id)
    assert chat is not None
    return [turn.text for turn in chat.conversation.turns]


def test_text_behind_a_lock_is_taken_in_once(
    path: Path, lock: sqlite3.Connection, rescue: ChatRescue
) -> None:
    file = end_locked(path, lock, LONGER, before=STORED)
    data = file.read_bytes()
    store = reopened(path)
    assert texts(store, "a") == ["one", "two"]
    assert rescue.take_in(store) == IN_CHATS
    assert store.load("a") == LONGER
    assert store.last_shown == "a"
    assert [row.n_turns for row in store.rows("three")] == [3]
    assert not file.exists()

    # Somebody goes on, and the file is there again: it could not be deleted, or a backup had it.
    further = replace(LONGER, conversation=LONGER.conversation.delete(3).ask("five"))
    store.save(further)
    file.write_bytes(data)
    assert rescue.take_in(store) == ""
    store.close()
    store = reopened(path)
    assert rescue.take_in(store) == ""
    assert store.load("a") == further
    assert len(store.rows()) == 1
    store.close()


def test_a_chat_that_was_never_stored_is_there_and_shown(
    path: Path, lock: sqlite3.Connection, rescue: ChatRescue
) -> None:
    end_locked(path, lock, STORED)
    store = reopened(path)
    assert rescue.take_in(store) == IN_CHATS
    assert store.load("a") == STORED
    assert store.last_shown == "a"
    store.close()


def test_newer_text_stays_and_the_rescued_stands_beside_it(
    path: Path, lock: sqlite3.Connection, rescue: ChatRescue
) -> None:
    end_locked(path, lock, LONGER, before=STORED)
    store = reopened(path)
    chat = store.load("a")
    assert chat is not None
    newer = replace(chat, conversation=chat.conversation.ask("otherwise"))
    store.save(newer)
    note = rescue.take_in(store)
    assert "is in a chat of its own" in note and "“one (rescued)”" in note
    assert texts(store, "a") == ["one", "two", "otherwise"]
    (other,) = (row.id for row in store.rows() if row.id != "a")
    assert texts(store, other) == ["one", "two", "three"]
    assert store.last_shown == other
    store.close()


def test_two_ends_of_one_chat_lose_nothing(
    path: Path, lock: sqlite3.Connection, rescue: ChatRescue
) -> None:
    other_end = replace(STORED, conversation=STORED.conversation.ask("otherwise"))
    end_locked(path, lock, LONGER, before=STORED)
    end_locked(path, lock, other_end, before=STORED)
    store = reopened(path)
    rescue.take_in(store)
    found = sorted(texts(store, row.id)[-1] for row in store.rows())
    assert found == ["otherwise", "three"]
    store.close()


def test_what_is_stored_leaves_no_file(store: ChatStore, path: Path, rescue: ChatRescue) -> None:
    store.save(STORED)
    assert rescue.leave(store, [STORED]) is None
    assert find_rescues(path, ()) == []


def test_a_deleted_chat_is_not_rescued(store: ChatStore, rescue: ChatRescue) -> None:
    store.save(STORED)
    store.delete("a")
    assert rescue.leave(store, [LONGER]) is None
    store.undelete("a")
    assert rescue.leave(store, [LONGER]) is not None


def test_a_store_that_never_opened_leaves_all_of_it(path: Path, rescue: ChatRescue) -> None:
    assert rescue.leave(None, [STORED, kept("b", ("hi", "ho"))]) is not None
    store = reopened(path)
    assert rescue.take_in(store) == IN_CHATS
    assert {row.id for row in store.rows()} == {"a", "b"}
    store.close()


def test_chats_that_cannot_be_changed_yet_leave_it_waiting(
    path: Path, lock: sqlite3.Connection, rescue: ChatRescue
) -> None:
    file = end_locked(path, lock, LONGER, before=STORED)
    store = ChatStore.open(path, now=Clock(), busy_s=0.01)
    lock.execute("BEGIN IMMEDIATE")
    waits = rescue.take_in(store)
    lock.execute("ROLLBACK")
    store.writable = False
    assert rescue.take_in(store) == waits
    assert "waits until" in waits and str(file) in waits
    store.writable = True
    assert rescue.take_in(store) == IN_CHATS
    store.close()


def test_a_fault_in_the_middle_takes_in_nothing(
    path: Path, store: ChatStore, rescue: ChatRescue
) -> None:
    long = kept("b", ("words " * 20_000, "x"))
    file = rescue.leave(None, [STORED, long])
    assert file is not None
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    assert "waits until" in rescue.take_in(store)
    assert store.rows() == []
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert rescue.take_in(store) == IN_CHATS
    assert len(store.rows()) == 2
    assert not file.exists()


def test_a_damaged_file_is_kept_and_told_once(
    path: Path, store: ChatStore, rescue: ChatRescue
) -> None:
    good, bad = rescue.leave(None, [STORED]), rescue.leave(None, [kept("b", ("hi", "ho"))])
    assert good is not None and bad is not None
    bad.write_bytes(bad.read_bytes()[:-9])
    data = bad.read_bytes()
    note = rescue.take_in(store)
    aside = bad.with_name(bad.name + ".broken-1")
    assert str(aside) in note and "damaged" in note and IN_CHATS in note
    assert aside.read_bytes() == data
    assert [row.id for row in store.rows()] == ["a"]
    assert rescue.take_in(store) == ""


def test_a_file_of_a_newer_version_is_left_for_it(store: ChatStore, rescue: ChatRescue) -> None:
    file = rescue.leave(None, [STORED])
    assert file is not None
    head, _, body = file.read_text(encoding="utf-8").partition("\n")
    file.write_text(json.dumps(json.loads(head) | {"version": 99}) + "\n" + body, encoding="utf-8")
    data = file.read_bytes()
    for _ in range(2):
        note = rescue.take_in(store)
        assert str(file) in note and "newer version" in note
    assert file.read_bytes() == data
    assert store.rows() == []
