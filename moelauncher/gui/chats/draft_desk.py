"""What stands in the message field: a new message, or an earlier one that is edited.

It stays with its chat when another one is shown, and is there again with that chat. Stands
beside :class:`~moelauncher.gui.chats.chat_session.ChatSession`. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from moelauncher.core.chats.drafts import Draft, Drafts
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.gui.chats.chat_pane import ChatPane


class DraftDesk(QObject):
    """The field of the chat that is shown, and the texts that wait in others."""

    def __init__(self, pane: ChatPane, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pane = pane
        self._drafts = Drafts()
        #: The key of the turn that is being edited; None: a new message is written.
        self.editing: int | None = None
        self._original = ""  # what that turn says
        pane.edit_cancelled.connect(self._cancelled)

    def begin_edit(self, key: int, text: str) -> None:
        """Put turn ``key`` into the field; what was there waits."""
        self._offer_back(self._pane.composer.text)
        self._edit(key, text, text)

    def take_edit(self) -> int | None:
        """The turn that was being edited; none is from now on."""
        editing, self.editing = self.editing, None
        return editing

    def give_back(self, shown: KeptChat, chat: KeptChat, text: str) -> None:
        """``text`` could not be sent in ``chat``: it is being written there again."""
        if chat.id == shown.id:
            self._pane.composer.set_draft(text)
        else:
            self._drafts.leave(chat, Draft(text))

    def change(self, before: KeptChat, now: KeptChat, starts: bool) -> None:
        """``now`` is shown in place of ``before``; a new message goes along into an empty chat.

        ``starts``: the program shows what was shown last, while the user writes already.
        """
        composer = self._pane.composer
        edited = composer.text
        self._pane.end_edit()
        text = composer.text
        goes_along = starts or not now.conversation.nodes
        if before.conversation.nodes or not goes_along:
            left = "" if goes_along else text
            self._drafts.leave(before, Draft(left, self.editing, edited))
        self.editing = None
        draft = self._drafts.take(now)
        if not (goes_along and text.strip()):
            composer.set_draft(draft.text)
        if draft.editing is not None and draft.editing in now.conversation.nodes:
            original = now.conversation.nodes[draft.editing].turn.text
            self._edit(draft.editing, original, draft.edited_text)

    # Parts

    def _edit(self, key: int, original: str, text: str) -> None:
        self.editing, self._original = key, original
        self._pane.begin_edit(text)

    def _cancelled(self, edited: str) -> None:
        self._offer_back(edited)
        self.take_edit()

    def _offer_back(self, edited: str) -> None:
        """What was written for the turn that is edited goes; Undo brings it back."""
        key, original = self.editing, self._original
        if key is not None and edited != original:
            self._pane.undo.offer(
                self.tr("The edit was dropped"), lambda: self._edit(key, original, edited)
            )
