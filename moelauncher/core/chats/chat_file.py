"""Opens the chats' file, whatever became of it, and says in words what is wrong with it.

In: a path. Out: a connection, and whether it can be written. Any thread.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from moelauncher.core.chats.chat_schema import VERSION, migrate, read_version
from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr


def told(error: sqlite3.Error, path: Path) -> LauncherError:
    """What an error of SQLite means to the user."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = code & 0xFF if code is not None else None
    details = f"{type(error).__name__}: {error}"
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LauncherError(
            tr("The chats in {path} are held by another program.").format(path=path),
            tr("New text is kept as soon as that program lets go."),
            details,
        )
    if kind == sqlite3.SQLITE_FULL:
        return LauncherError(
            tr("The disk is full: the chat is not kept at the moment."),
            tr("Make room; keeping is tried again with the next change."),
            details,
        )
    if kind == sqlite3.SQLITE_READONLY:
        return LauncherError(
            tr("The chats in {path} can be read but not changed.").format(path=path),
            tr("Check that the file and its folder are yours."),
            details,
        )
    return LauncherError(
        tr("The chats in {path} cannot be used: {reason}.").format(path=path, reason=error),
        tr("This chat is not kept."),
        details,
    )


def open_chats(path: Path, busy_s: float) -> tuple[sqlite3.Connection, bool]:
    """The file, brought to this version, and whether it can be written. Raises sqlite3.Error."""
    db = sqlite3.connect(path, timeout=busy_s, isolation_level=None)
    try:
        version = read_version(db)
        if version > VERSION:
            return db, False
        if version and db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _damage()
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA journal_mode = WAL")
        # With WAL a power cut may cost the last second; the file stays sound.
        db.execute("PRAGMA synchronous = NORMAL")
        migrate(db, version)
        # An empty change tells whether writing works at all.
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE meta SET value = value WHERE name = 'last_shown'")
        db.execute("COMMIT")
        return db, True
    except sqlite3.Error as error:
        db.close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise
    return _open_to_read(path, busy_s), False


def _open_to_read(path: Path, busy_s: float) -> sqlite3.Connection:
    address = path.absolute().as_uri()
    for mode in ("?mode=ro", "?immutable=1"):
        # Without rights on the folder, the files of the write-ahead log cannot be made.
        db = sqlite3.connect(address + mode, timeout=busy_s, isolation_level=None, uri=True)
        try:
            db.execute("SELECT count(*) FROM chats").fetchone()
        except sqlite3.OperationalError:
            db.close()
        else:
            return db
    error = sqlite3.OperationalError("unable to open the file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    raise error


def _damage() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("the check of the file failed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is no database, or a broken one."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
