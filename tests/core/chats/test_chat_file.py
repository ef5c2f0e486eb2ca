"""Files of chats that are damaged, newer, locked, full or read-only."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.chats.chat_schema import VERSION
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.errors import LauncherError
from tests.helpers.kept_chats import kept


def test_a_corrupt_file_is_moved_aside_and_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database at all " * 100)
    store = ChatStore.open(path)
    assert "chats.sqlite3.broken-1" in store.note
    assert path.with_name("chats.sqlite3.broken-1").read_bytes().startswith(b"this is no")
    store.save(kept("a", ("hi", "x")))
    assert len(store.rows()) == 1
    store.close()


def test_a_file_damaged_in_its_middle_is_moved_aside(path: Path) -> None:
    store = ChatStore.open(path)
    store.save(kept("a", *((f"question {n}", "answer " * 500) for n in range(20))))
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    data = bytearray(path.read_bytes())
    data[8192:24576] = b"\xa5" * 16384
    path.write_bytes(data)
    again = ChatStore.open(path)
    assert "broken-1" in again.note
    assert again.rows() == []
    again.close()


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    ChatStore.open(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(LauncherError, match="newer version"):
        ChatStore.open(path)
    assert path.read_bytes() == before


def test_a_locked_file_is_told_and_served_later(store: ChatStore, path: Path) -> None:
    store._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LauncherError, match="held by another program"):
        store.save(kept("a", ("hi", "x")))
    other.execute("ROLLBACK")
    other.close()
    store.save(kept("a", ("hi", "x")))
    assert len(store.rows()) == 1


def test_a_file_that_is_locked_at_the_start(path: Path) -> None:
    ChatStore.open(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LauncherError, match="held by another program"):
        ChatStore.open(path, busy_s=0.01)
    other.close()


def test_a_full_disk_is_told_and_nothing_kept_is_lost(store: ChatStore) -> None:
    chat = kept("a", ("hi", "x"))
    store.save(chat)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    longer = replace(chat, conversation=chat.conversation.ask("words " * 20_000))
    with pytest.raises(LauncherError, match="disk is full"):
        store.save(longer)
    assert store.load("a") == chat
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.save(longer)
    assert store.load("a") == longer


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    with pytest.raises(LauncherError, match="cannot be opened"):
        ChatStore.open(tmp_path / "data" / "chats.sqlite3")


_READ_ONLY = """
import os
import sys
from pathlib import Path
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.errors import LauncherError
if sys.platform != "win32" and os.geteuid() == 0:
    os.seteuid(65534)  # root may write everywhere
store = ChatStore.open(Path(sys.argv[1]))
print(store.writable, store.note, [row.title for row in store.rows()])
print(store.load("a").conversation.turns[1].text)
try:
    store.rename("a", "other")
except LauncherError as error:
    print(error.message)
"""


def test_a_read_only_file_can_still_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "chats.sqlite3"
        store = ChatStore.open(path)
        store.save(kept("a", ("hi", "hello")))
        store.close()
        path.chmod(0o444)  # on Windows the read-only mark; a folder has none that counts
        folder.chmod(0o555)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _READ_ONLY, str(path)],
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
                timeout=240,
            )
        finally:
            folder.chmod(0o755)
            path.chmod(0o644)  # Windows would not delete it
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("False ")
    assert "can be read but not changed" in lines[0]
    assert "['hi']" in lines[0]
    assert lines[1] == "hello"
    assert "can be read but not changed" in lines[2]
