"""What the list of chats asks for: search, names, copies, files, and deleting with undo.

Stands behind :class:`~moelauncher.gui.chats.chat_session.ChatSession`, which shows a chat and keeps
it. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.main_window import MainWindow


class KeptChatsDesk(QObject):
    """Works on chats by their ids, whether one is shown or not."""

    def __init__(
        self, window: MainWindow, session: ChatSession, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._chats = window.chats
        self._session = session
        self._keeper = keeper = session.keeper
        self._chats.search_changed.connect(keeper.set_query)
        self._chats.rename_requested.connect(self._rename)
        self._chats.delete_requested.connect(self._delete)
        self._chats.duplicate_requested.connect(self._duplicate)
        self._chats.export_requested.connect(keeper.export)
        self._chats.import_requested.connect(keeper.import_files)
        keeper.rows_changed.connect(self._chats.set_rows)

    def _rename(self, chat_id: str, title: str) -> None:
        title = " ".join(title.split())
        self._session.set_title(chat_id, title)
        self._keeper.rename(chat_id, title)

    def _delete(self, chat_id: str) -> None:
        session, keeper = self._session, self._keeper
        shown = chat_id == session.chat.id
        answering = session.open.answering
        if answering is not None and answering.id == chat_id:
            session.tell_to_wait()
            return
        title = self._chats.title_of(chat_id)
        keeper.delete(chat_id)
        session.deleted.emit(chat_id)
        if shown:
            session.show_empty()

        def take_back() -> None:
            keeper.undelete(chat_id)
            if shown and not session.conversation.nodes:
                session.open_chat(chat_id)

        self._chats.offer_undo(title, take_back)

    def _duplicate(self, chat_id: str) -> None:
        self._session.store()
        self._keeper.duplicate(chat_id)
