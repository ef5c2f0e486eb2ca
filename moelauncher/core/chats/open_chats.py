"""The chats in the user's hands: one is shown, and a reply may go on in it or in another.

A reply belongs to the chat that asked for it, not to what is looked at: whoever opens another
chat meanwhile finds it complete later. One model writes one reply, so at most one chat is being
answered. Pure values; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moelauncher.core.chats.kept_chat import KeptChat


@dataclass(frozen=True)
class OpenChats:
    """``shown`` is in view. ``away``: another one that a reply is being written for."""

    shown: KeptChat
    away: KeptChat | None = None

    @property
    def answering(self) -> KeptChat | None:
        """The chat that a reply is being written for, in view or not; None: no reply goes on."""
        if self.away is not None:
            return self.away
        return self.shown if self.shown.conversation.streaming else None

    def show(self, chat: KeptChat) -> OpenChats:
        """Look at ``chat``.

        Where it is being answered, what is here of it is newer than any copy; a reply that is
        open in another one is written by nobody, so it is cut.
        """
        answering = self.answering
        if answering is not None and chat.id == answering.id:
            return OpenChats(answering)
        return OpenChats(replace(chat, conversation=chat.conversation.cut()), answering)

    def with_shown(self, chat: KeptChat) -> OpenChats:
        """Something was said or set in the chat in view.

        Raises ValueError where a second reply would be begun.
        """
        if self.away is not None and chat.conversation.streaming:
            raise ValueError("one model writes one reply")
        return replace(self, shown=chat)

    def with_answered(self, chat: KeptChat) -> OpenChats:
        """The reply grew, or ended. Raises ValueError for another chat than the one answered."""
        answering = self.answering
        if answering is None or chat.id != answering.id:
            raise ValueError("no reply is being written for this chat")
        if self.away is None:
            return replace(self, shown=chat)
        return replace(self, away=chat if chat.conversation.streaming else None)

    def renamed(self, chat_id: str, title: str) -> OpenChats:
        """The chat of that id is called ``title`` from now on, where it is one of these."""
        shown, away = self.shown, self.away
        if shown.id == chat_id:
            shown = replace(shown, title=title)
        if away is not None and away.id == chat_id:
            away = replace(away, title=title)
        return OpenChats(shown, away)
