"""Keeps chats on the disk without the window waiting for it.

One thread of its own owns the :class:`ChatStore`: it opens the file at the first need, and
saves of one chat that come quicker than the disk are joined. What cannot be saved is tried
again, and what the program's end leaves unsaved is rescued into a file. Answers arrive by signals
on the window's thread. GUI thread only, apart from the thread's side.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.chats.chat_export import LONGEST_FILE_BYTES, read_chat, to_json, to_markdown
from moelauncher.core.chats.chat_rescue import ChatRescue
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.errors import LauncherError

_log = logging.getLogger(__name__)

RETRY_MS = 5000

Work = Callable[[ChatStore], object]
Done = Callable[[object], None]


class ChatKeeper(QObject):
    """The chats of one file.

    Signals:
        rows_changed(list): the :class:`ChatRow` values that the search asks for, newest first.
        started(object): the KeptChat that was shown last, or None; once, after :meth:`start`.
        loaded(str, object): the id asked for by :meth:`load`, and the KeptChat, or None if it
            is gone.
        made(object): the KeptChat that was copied or imported.
        message(str, str): a sentence for the status line, and its level.
    """

    rows_changed = Signal(list)
    started = Signal(object)
    loaded = Signal(str, object)
    made = Signal(object)
    message = Signal(str, str)
    _ended = Signal(object, object, object)
    _noted = Signal(str)

    def __init__(
        self, path: Path, rescue_folders: Sequence[Path] = (), parent: QObject | None = None
    ) -> None:
        """``rescue_folders``: where to leave what the folder of ``path`` does not take."""
        super().__init__(parent)
        self._path = path
        self._rescue = ChatRescue(path, rescue_folders)
        # No executor: that takes nothing more once the interpreter ends, and what was said last
        # is saved even then.
        self._thread: threading.Thread | None = None  # from the first need on
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._store: ChatStore | None = None  # the thread's own
        self._lock = threading.Lock()
        self._waiting: dict[str, KeptChat] = {}  # to be saved, the newest of each
        self._shown = ""
        self._query = ""
        self._told = ""
        self._closed = False
        #: What was told when the file was opened, "" for nothing.
        self.news = ""
        self._retry = QTimer(self, singleShot=True, interval=RETRY_MS)
        self._retry.timeout.connect(self._save_waiting)
        self._ended.connect(self._on_ended)
        self._noted.connect(self._tell_news)

    def start(self) -> None:
        """Open the file and tell what was shown last."""

        def last(store: ChatStore) -> object:
            chat_id = store.last_shown
            return store.load(chat_id) if chat_id else None

        self._do(last, self.started.emit)
        self.refresh()

    def refresh(self) -> None:
        """Tell the rows anew."""
        query = self._query
        self._do(lambda store: store.rows(query), lambda rows: self._tell_rows(query, rows))

    def set_query(self, query: str) -> None:
        """Tell only the chats that hold these words; empty: all."""
        self._query = query
        self.refresh()

    def save(self, chat: KeptChat) -> None:
        """Keep ``chat`` as it is now; soon, in the background."""
        with self._lock:
            first = not self._waiting
            self._waiting[chat.id] = chat
        if first:
            self._save_waiting()

    def load(self, chat_id: str) -> None:
        """Answer with :attr:`loaded`."""
        self._do(
            lambda store: self._newest(store, chat_id),
            lambda chat: self.loaded.emit(chat_id, chat),
        )

    def set_last_shown(self, chat_id: str) -> None:
        """Remember what to show at the next start; empty: an empty chat."""
        self._shown = chat_id
        self._do(lambda store: store.set_last_shown(chat_id) if store.writable else None)

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat a name."""
        with self._lock:
            waiting = self._waiting.get(chat_id)
            if waiting is not None:
                self._waiting[chat_id] = replace(waiting, title=title)
        self._do(lambda store: store.rename(chat_id, title))
        self.refresh()

    def delete(self, chat_id: str) -> None:
        """Take a chat out of the list."""
        self._do(lambda store: store.delete(chat_id))
        self.refresh()

    def undelete(self, chat_id: str) -> None:
        """Bring a deleted chat back into the list."""
        self._do(lambda store: store.undelete(chat_id))
        self.refresh()

    def duplicate(self, chat_id: str) -> None:
        """Copy a chat, and answer with :attr:`made` for the copy."""

        def copy(store: ChatStore) -> object:
            self._save_all(store)
            return store.load(store.duplicate(chat_id))

        self._do(copy, self._tell_made)
        self.refresh()

    def export(self, chat_id: str, path: Path) -> None:
        """Write a chat to ``path``: JSON where its name ends so, else Markdown."""

        def write(store: ChatStore) -> object:
            chat = self._newest(store, chat_id)
            if chat is None:
                return None
            as_json = path.suffix.lower() == ".json"
            write_text_atomically(path, to_json(chat) if as_json else to_markdown(chat))
            return path

        def tell(written: object) -> None:
            if written is not None:
                text = self.tr("The chat was written to {path}.").format(path=written)
                self.message.emit(text, "good")

        self._do(write, tell)

    def import_files(self, paths: Sequence[Path]) -> None:
        """Read exported chats; each is answered with :attr:`made`."""
        for path in paths:

            def read(store: ChatStore, path: Path = path) -> object:
                chat = read_chat(path.name, _bytes_of(path))
                store.save(chat)
                return chat

            self._do(read, self._tell_made)
        self.refresh()

    def close(self) -> None:
        """Save what waits, or rescue it, and end the thread. Blocks until it is done."""
        if self._closed:
            return
        self._closed = True
        self._retry.stop()
        self._order(partial(self._run, self._save_all, None))
        self._order(self._leave_rescue)
        self._order(self._close_store)
        self._orders.put(None)
        if self._thread is not None:
            self._thread.join()

    # The thread's side

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                order()
            except Exception:
                _log.exception("the chats' thread failed")

    def _run(self, work: Work, done: Done | None) -> None:
        try:
            if self._store is None:
                self._store = ChatStore.open(self._path)
                notes = (self._store.note, self._rescue.take_in(self._store))
                if any(notes):
                    # In one: the status line holds one message.
                    self._noted.emit(" ".join(note for note in notes if note))
            value = work(self._store)
        except LauncherError as error:
            self._ended.emit(done, None, error)
        except Exception as error:
            _log.exception("the chats' thread failed")
            self._ended.emit(done, None, LauncherError(str(error)))
        else:
            self._ended.emit(done, value, None)

    def _newest(self, store: ChatStore, chat_id: str) -> KeptChat | None:
        """What could not be saved yet is newer than what is in the file."""
        with self._lock:
            waiting = self._waiting.get(chat_id)
        return store.load(chat_id) if waiting is None else waiting

    def _save_all(self, store: ChatStore) -> object:
        with self._lock:
            chats, self._waiting = self._waiting, {}
        failure: Exception | None = None
        for chat_id, chat in tuple(chats.items()):
            # A chat that cannot be saved must not keep the others from the disk.
            try:
                store.save(chat)
                del chats[chat_id]
            except Exception as error:
                failure = failure or error
        with self._lock:
            self._waiting = {**chats, **self._waiting}
        if failure is not None:
            raise failure
        return None

    def _leave_rescue(self) -> None:
        with self._lock:
            chats = tuple(self._waiting.values())
        try:
            file = self._rescue.leave(self._store, chats, self._shown)
        except Exception as error:
            _log.exception("unsaved chats are lost: %s", error)
        else:
            if file is not None:
                _log.warning("What could not be stored waits for the next start in %s", file)

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()

    # The window's side

    def _do(self, work: Work, done: Done | None = None) -> None:
        if not self._closed:
            self._order(partial(self._run, work, done))

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.put(order)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="chat-store", daemon=True)
            self._thread.start()

    def _save_waiting(self) -> None:
        self._do(self._save_all, self._saved)

    def _saved(self, _: object) -> None:
        if self._told:
            self._told = ""
            self.message.emit(self.tr("The chat is kept again."), "good")
        self.refresh()

    @Slot(str)
    def _tell_news(self, news: str) -> None:
        self.news = news
        self.message.emit(news, "warning")

    def _tell_made(self, chat: object) -> None:
        if chat is not None:
            self.made.emit(chat)

    def _tell_rows(self, query: str, rows: object) -> None:
        if query == self._query and isinstance(rows, list):
            self.rows_changed.emit(rows)

    @Slot(object, object, object)
    def _on_ended(self, done: Done | None, value: object, error: LauncherError | None) -> None:
        if self._closed:
            return
        if error is None:
            if done is not None:
                done(value)
            return
        with self._lock:
            unsaved = bool(self._waiting)
        if unsaved:
            self._retry.start()
        if error.sentence != self._told:
            # The same sentence once a second would hide everything else.
            self._told = error.sentence if unsaved else ""
            self.message.emit(error.sentence, "error")
            _log.warning("%s %s", error.sentence, error.details)


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise LauncherError(f"{path.name}: {error.strerror or error}") from error
