"""What was being written in each chat when it was left, while the program runs.

Kept up to date in place, by the window's thread alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from moelauncher.core.chats.kept_chat import KeptChat


@dataclass(frozen=True)
class Draft:
    """What stands in the message field. ``editing``: the key of the turn that is rewritten."""

    text: str = ""
    editing: int | None = None
    edited_text: str = ""


class Drafts:
    """Drafts by chat. Chats in which nothing was said yet are one and the same here."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}

    def leave(self, chat: KeptChat, draft: Draft) -> None:
        """``chat`` is left while ``draft`` stands in the field."""
        self._drafts.pop(_key(chat), None)
        if draft.text.strip() or draft.editing is not None:
            self._drafts[_key(chat)] = draft

    def take(self, chat: KeptChat) -> Draft:
        """What was being written in ``chat``; it stands in the field from now on."""
        return self._drafts.pop(_key(chat), Draft())


def _key(chat: KeptChat) -> str:
    return chat.id if chat.conversation.nodes else ""
