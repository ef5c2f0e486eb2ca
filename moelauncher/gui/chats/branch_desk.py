"""Changes of what the visible branch is: another version, fewer turns; what is lost can be undone.

Stands behind :class:`~moelauncher.gui.chats.chat_session.ChatSession`. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from moelauncher.core.chats.conversation import Conversation
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.controls.undo_bar import UndoBar


class BranchDesk(QObject):
    """Works on the chat that is shown, while no reply is being written in it."""

    def __init__(self, undo: UndoBar, session: ChatSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._undo = undo
        self._session = session

    def step(self, key: int, step: int) -> None:
        """Show the version of turn ``key`` that is ``step`` further."""
        talk = self._session.conversation
        versions = talk.versions(key)
        at = versions.index(key) + step
        if 0 <= at < len(versions):
            held = [node.key for node in talk.path].index(key)
            self._session.change(talk.choose(versions[at]), held)

    def delete(self, key: int) -> None:
        """Delete turn ``key`` and what follows it."""
        before = self._session.conversation
        n_gone = len(before.beneath(key))
        self._session.change(before.delete(key))
        self._session.deleted.emit(self._session.chat.id)
        if n_gone == 1:
            text = self.tr("1 message was deleted")
        else:
            text = self.tr("{n} messages were deleted").format(n=n_gone)
        self._offer_undo(text, lambda talk: talk.undelete(before, key))

    def leave_out(self, left_out: Sequence[int]) -> None:
        """Give the model these turns no longer; they stay to be read."""
        self._session.change(self._session.conversation.leave_out(left_out))
        text = self.tr("{n} messages are given to the model no longer").format(n=len(left_out))
        self._offer_undo(text, lambda talk: talk.take_in(left_out))

    def _offer_undo(self, text: str, back: Callable[[Conversation], Conversation]) -> None:
        session = self._session
        chat_id = session.chat.id

        def take_back() -> None:
            if session.chat.id != chat_id:
                return
            if session.refused():
                self._undo.offer(text, take_back)
            else:
                session.change(back(session.conversation))

        self._undo.offer(text, take_back)
