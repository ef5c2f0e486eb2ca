"""All chats in one SQLite file.

In: chats, one change at a time. Out: rows for the list, whole chats, search hits. A reply
that is being written is stored as it stands; one that nobody finished is marked as cut when
the file is opened again. A file that cannot be read is moved aside and named, one of a newer
version is left alone. One thread uses a store: the one that opened it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from moelauncher.core.chats.chat_file import is_damage, open_chats, told
from moelauncher.core.chats.chat_schema import VERSION, read_version
from moelauncher.core.chats.chat_search import find_chats
from moelauncher.core.chats.conversation import Conversation, Node, restored
from moelauncher.core.chats.kept_chat import ChatRow, KeptChat, new_chat_id
from moelauncher.core.chats.rescued_chat import Rescue, merged
from moelauncher.core.chats.turn_json import details_of, turn_from
from moelauncher.core.damaged_file import move_aside
from moelauncher.core.errors import LauncherError
from moelauncher.core.text_cleaning import writable_text
from moelauncher.core.translate import tr

#: How long another program may hold the file before that is told.
BUSY_S = 2.0


class ChatStore:
    """The chats of one file. Make it with :meth:`open`."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        *,
        writable: bool,
        note: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._db = connection
        self._now = now
        self._written: dict[str, KeptChat] = {}
        self._deleted: set[str] = set()
        #: False: chats can be read but not kept.
        self.writable = writable
        #: What was found wrong while opening, a sentence; empty if nothing.
        self.note = note

    @classmethod
    def open(
        cls, path: Path, *, now: Callable[[], float] = time.time, busy_s: float = BUSY_S
    ) -> ChatStore:
        """Open or begin the file at ``path``.

        Raises LauncherError where the file is held by another program, comes from a newer
        version of this program, or cannot be made.
        """
        note = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                connection, writable = open_chats(path, busy_s)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                aside = move_aside(path)
                note = tr(
                    "The chats could not be read and were moved to {path}; a new file was begun."
                ).format(path=aside)
                connection, writable = open_chats(path, busy_s)
        except sqlite3.Error as error:
            raise told(error, path) from error
        except OSError as error:
            raise LauncherError(
                tr("The chats in {path} cannot be opened: {reason}.").format(
                    path=path, reason=error.strerror or str(error)
                ),
                tr("This chat is not kept."),
            ) from error
        version = read_version(connection)
        if version > VERSION:
            connection.close()
            raise LauncherError(
                tr("The chats in {path} come from a newer version of this program.").format(
                    path=path
                ),
                tr("They are left as they are; chats are not kept now."),
                f"version {version}, known up to {VERSION}",
            )
        if not writable and not note:
            note = tr("The chats in {path} can be read but not changed.").format(path=path)
        store = cls(path, connection, writable=writable, note=note, now=now)
        if writable:
            with store._change():
                store._db.execute("DELETE FROM chats WHERE deleted_s IS NOT NULL")
                store._db.execute("UPDATE turns SET state = 'cut' WHERE state = 'streaming'")
        return store

    def close(self) -> None:
        """Give the file back."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    # Reading

    def rows(self, query: str = "") -> list[ChatRow]:
        """All chats, newest first; with ``query`` those that hold every word of it."""
        with self._told():
            snippets = find_chats(self._db, writable_text(query)) if query.strip() else None
            return [
                ChatRow(
                    chat_id,
                    title or auto_title or tr("Empty chat"),
                    updated_s,
                    n_turns,
                    label,
                    snippets[chat_id] if snippets is not None else "",
                )
                for chat_id, title, auto_title, updated_s, n_turns, label in self._db.execute(
                    "SELECT id, title, auto_title, updated_s, n_turns, label FROM chats"
                    " WHERE deleted_s IS NULL ORDER BY updated_s DESC, id"
                )
                if snippets is None or chat_id in snippets
            ]

    def load(self, chat_id: str) -> KeptChat | None:
        """A whole chat; None where there is none of that id.

        A reply in it that was being written counts as cut off: nobody writes on into what was
        read from the disk.
        """
        with self._told():
            head = self._db.execute(
                "SELECT title, system, chosen, left_out, settings FROM chats"
                " WHERE id = ? AND deleted_s IS NULL",
                (chat_id,),
            ).fetchone()
            if head is None:
                return None
            title, system, chosen, left_out, settings = head
            nodes = [
                Node(key, parent, turn_from(role, text, reasoning, state, _object(details)))
                for key, parent, role, text, reasoning, state, details in self._db.execute(
                    "SELECT key, parent, role, text, reasoning, state, details FROM turns"
                    " WHERE chat_id = ?",
                    (chat_id,),
                )
            ]
        choices = {
            int(parent): child
            for parent, child in _object(chosen).items()
            if parent.isdecimal() and isinstance(child, int)
        }
        keys = [key for key in _list(left_out) if isinstance(key, int)]
        conversation = restored(system, nodes, choices, keys)
        chat = KeptChat(chat_id, conversation, title, _object(settings))
        self._written[chat_id] = chat
        return replace(chat, conversation=conversation.cut())

    @property
    def last_shown(self) -> str:
        """The id of the chat that was shown last; empty: none, or an empty one."""
        with self._told():
            row = self._db.execute("SELECT value FROM meta WHERE name = 'last_shown'").fetchone()
        return str(row[0]) if row else ""

    def written(self, chat_id: str) -> KeptChat | None:
        """What this store wrote or read of a chat last, without looking at the file again."""
        return self._written.get(chat_id)

    def is_deleted(self, chat_id: str) -> bool:
        """Whether this store took the chat out of the list."""
        return chat_id in self._deleted

    # Writing

    def save(self, chat: KeptChat) -> None:
        """Write what changed since this chat was last saved or loaded."""
        before = self._written.get(chat.id)
        if before is None and not chat.conversation.nodes:
            return
        with self._change():
            self._save_parts(chat, before)
        self._written[chat.id] = chat

    def take_in(self, rescue: Rescue) -> tuple[KeptChat, ...]:
        """Store what an end of the program could not, all of it at once and never a second time.

        Answers the chats that were stored: under their own ids, or under new ones where the file
        holds other text by now. Nothing is stored of what is there already.
        """
        saved: dict[str, KeptChat] = {}
        with self._change():
            mark = f"taken in {rescue.id}"
            if self._db.execute("SELECT 1 FROM meta WHERE name = ?", (mark,)).fetchone():
                return ()
            self._set_meta(mark, str(self._now()))
            for one in rescue.chats:
                stored = self.load(one.chat.id)
                chat = merged(one, stored)
                if chat is not None:
                    self._save_parts(chat, stored if stored and stored.id == chat.id else None)
                    saved[one.chat.id] = chat
            if rescue.shown in saved:
                self._set_meta("last_shown", saved[rescue.shown].id)
        self._written |= {chat.id: chat for chat in saved.values()}
        return tuple(saved.values())

    def set_last_shown(self, chat_id: str) -> None:
        """Remember which chat to show at the next start."""
        with self._change():
            self._set_meta("last_shown", chat_id)

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat a name of its own; an empty one gives it back its first words."""
        title = writable_text(" ".join(title.split()))
        with self._change():
            self._db.execute("UPDATE chats SET title = ? WHERE id = ?", (title, chat_id))
        written = self._written.get(chat_id)
        if written is not None:
            self._written[chat_id] = replace(written, title=title)

    def delete(self, chat_id: str) -> None:
        """Take a chat out of the list; :meth:`undelete` works until the program ends."""
        self._set_deleted(chat_id, self._now())
        self._deleted.add(chat_id)

    def undelete(self, chat_id: str) -> None:
        """Take back a :meth:`delete`."""
        self._set_deleted(chat_id, None)
        self._deleted.discard(chat_id)

    def duplicate(self, chat_id: str) -> str:
        """Copy a chat with all its versions; answers the copy's id, "" without an original.

        A reply that is being written is in the copy as far as it was stored, cut.
        """
        chat = self.load(chat_id)
        if chat is None:
            return ""
        title = tr("{title} (copy)").format(title=chat.shown_title)
        talk = chat.conversation.cut()
        copy = replace(chat, id=new_chat_id(), title=title, conversation=talk)
        self.save(copy)
        return copy.id

    # Parts

    def _set_meta(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def _save_parts(self, chat: KeptChat, before: KeptChat | None) -> None:
        self._save_head(chat, before)
        self._save_turns(chat, before.conversation if before else Conversation())

    def _save_head(self, chat: KeptChat, before: KeptChat | None) -> None:
        talk = chat.conversation
        reply = talk.last_reply
        values = {
            "id": chat.id,
            "title": writable_text(chat.title),
            "auto_title": replace(chat, title="").shown_title,
            "now": self._now(),
            "system": writable_text(talk.system),
            "chosen": json.dumps({str(k): v for k, v in talk.chosen.items()}),
            "left_out": json.dumps(sorted(talk.left_out)),
            "settings": writable_text(json.dumps(dict(chat.settings), ensure_ascii=False)),
            "n_turns": len(talk.nodes),
            "label": writable_text(reply.label) if reply else "",
        }
        if before is None:
            self._db.execute(
                "INSERT INTO chats (id, title, auto_title, created_s, updated_s, system,"
                " chosen, left_out, settings, n_turns, label) VALUES (:id, :title,"
                " :auto_title, :now, :now, :system, :chosen, :left_out, :settings,"
                " :n_turns, :label) ON CONFLICT (id) DO UPDATE SET updated_s = :now",
                values,
            )
        # Looking at another version is no news; the list keeps its order.
        news = before is None or before.conversation.nodes != talk.nodes
        self._db.execute(
            "UPDATE chats SET title = :title, auto_title = :auto_title, system = :system,"
            " chosen = :chosen, left_out = :left_out, settings = :settings,"
            " n_turns = :n_turns, label = :label"
            + (", updated_s = :now" if news else "")
            + " WHERE id = :id",
            values,
        )

    def _save_turns(self, chat: KeptChat, before: Conversation) -> None:
        nodes = chat.conversation.nodes
        gone = [(chat.id, key) for key in before.nodes if key not in nodes]
        self._db.executemany("DELETE FROM turns WHERE chat_id = ? AND key = ?", gone)
        # Frozen turns: the same object is the same text, whatever its length.
        changed = [n for n in nodes.values() if before.nodes.get(n.key) is not n]
        self._db.executemany(
            "INSERT INTO turns (chat_id, key, parent, role, text, reasoning, state, details)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (chat_id, key) DO UPDATE SET"
            " parent = excluded.parent, text = excluded.text, reasoning = excluded.reasoning,"
            " state = excluded.state, details = excluded.details",
            [_row(chat.id, node) for node in changed],
        )

    def _set_deleted(self, chat_id: str, when_s: float | None) -> None:
        with self._change():
            self._db.execute("UPDATE chats SET deleted_s = ? WHERE id = ?", (when_s, chat_id))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise told(error, self._path) from error

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        """All of it or nothing, in one transaction."""
        with self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise


def _row(chat_id: str, node: Node) -> tuple[object, ...]:
    turn = node.turn
    details = json.dumps(details_of(turn), ensure_ascii=False)
    return (
        chat_id,
        node.key,
        node.parent,
        turn.role,
        writable_text(turn.text),
        writable_text(turn.reasoning),
        turn.state.value,
        writable_text(details),
    )


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _list(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return value if isinstance(value, list) else []
