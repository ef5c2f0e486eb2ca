"""The tables of the chat database, one step a version.

A step is never changed once it is released: a new version adds a step. Texts are indexed by
three letters (FTS5, trigram), so that languages without spaces are found too; a reply is
indexed when it is finished, not at every second of its writing.
"""

from __future__ import annotations

import sqlite3

_FIRST = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE chats (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL DEFAULT '',
        auto_title TEXT NOT NULL DEFAULT '',
        created_s REAL NOT NULL,
        updated_s REAL NOT NULL,
        deleted_s REAL,
        system TEXT NOT NULL DEFAULT '',
        chosen TEXT NOT NULL DEFAULT '{}',
        left_out TEXT NOT NULL DEFAULT '[]',
        settings TEXT NOT NULL DEFAULT '{}',
        n_turns INTEGER NOT NULL DEFAULT 0,
        label TEXT NOT NULL DEFAULT ''
    )""",
    """CREATE TABLE turns (
        id INTEGER PRIMARY KEY,
        chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        key INTEGER NOT NULL,
        parent INTEGER NOT NULL,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        reasoning TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT 'done',
        details TEXT NOT NULL DEFAULT '{}',
        UNIQUE (chat_id, key)
    )""",
    "CREATE VIRTUAL TABLE turn_words USING fts5 (text, content = 'turns', content_rowid = 'id',"
    " tokenize = 'trigram')",
    """CREATE TRIGGER turn_added AFTER INSERT ON turns WHEN new.state <> 'streaming' BEGIN
        INSERT INTO turn_words (rowid, text) VALUES (new.id, new.text);
    END""",
    """CREATE TRIGGER turn_gone AFTER DELETE ON turns WHEN old.state <> 'streaming' BEGIN
        INSERT INTO turn_words (turn_words, rowid, text) VALUES ('delete', old.id, old.text);
    END""",
    # Before and after: the order of two triggers of one moment is not promised.
    """CREATE TRIGGER turn_unwritten BEFORE UPDATE ON turns WHEN old.state <> 'streaming' BEGIN
        INSERT INTO turn_words (turn_words, rowid, text) VALUES ('delete', old.id, old.text);
    END""",
    """CREATE TRIGGER turn_written AFTER UPDATE ON turns WHEN new.state <> 'streaming' BEGIN
        INSERT INTO turn_words (rowid, text) VALUES (new.id, new.text);
    END""",
)

#: What was thought is found as well as what was said.
_THINKING_IS_FOUND = (
    *(
        f"DROP TRIGGER {name}"
        for name in ("turn_added", "turn_gone", "turn_unwritten", "turn_written")
    ),
    "DROP TABLE turn_words",
    "CREATE VIRTUAL TABLE turn_words USING fts5 (text, reasoning, content = 'turns',"
    " content_rowid = 'id', tokenize = 'trigram')",
    "INSERT INTO turn_words (rowid, text, reasoning)"
    " SELECT id, text, reasoning FROM turns WHERE state <> 'streaming'",
    """CREATE TRIGGER turn_added AFTER INSERT ON turns WHEN new.state <> 'streaming' BEGIN
        INSERT INTO turn_words (rowid, text, reasoning) VALUES (new.id, new.text, new.reasoning);
    END""",
    """CREATE TRIGGER turn_gone AFTER DELETE ON turns WHEN old.state <> 'streaming' BEGIN
        INSERT INTO turn_words (turn_words, rowid, text, reasoning)
            VALUES ('delete', old.id, old.text, old.reasoning);
    END""",
    """CREATE TRIGGER turn_unwritten BEFORE UPDATE ON turns WHEN old.state <> 'streaming' BEGIN
        INSERT INTO turn_words (turn_words, rowid, text, reasoning)
            VALUES ('delete', old.id, old.text, old.reasoning);
    END""",
    """CREATE TRIGGER turn_written AFTER UPDATE ON turns WHEN new.state <> 'streaming' BEGIN
        INSERT INTO turn_words (rowid, text, reasoning) VALUES (new.id, new.text, new.reasoning);
    END""",
)

_STEPS: tuple[tuple[str, ...], ...] = (_FIRST, _THINKING_IS_FOUND)

#: The version that this program writes.
VERSION = len(_STEPS)


def read_version(db: sqlite3.Connection) -> int:
    """The version of an open file; 0 for a new one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a file from ``version`` to :data:`VERSION`, each step whole or not at all."""
    for number in range(version, VERSION):
        db.execute("BEGIN IMMEDIATE")
        try:
            # Another instance may have been quicker.
            if read_version(db) == number:
                for statement in _STEPS[number]:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number + 1}")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
