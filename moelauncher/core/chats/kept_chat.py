"""A chat as it is kept: the conversation, its name, and what was set for it.

Pure values; any thread.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.text_cleaning import display_name

TITLE_CHARS = 60


def new_chat_id() -> str:
    """A name that no other chat has, on any machine."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class KeptChat:
    """One chat. ``title`` empty: it is called by its first words."""

    id: str
    conversation: Conversation = field(default_factory=Conversation)
    title: str = ""
    #: What was set for this chat alone, as JSON values by setting name.
    settings: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def shown_title(self) -> str:
        """What the list calls it."""
        return self.title or first_words(self.conversation)


@dataclass(frozen=True)
class ChatRow:
    """A chat in the list. ``snippet``: where the search found something, else empty."""

    id: str
    title: str
    updated_s: float  # seconds since 1970
    n_turns: int
    label: str = ""  # the model that answered last
    snippet: str = ""


def first_words(conversation: Conversation) -> str:
    """The beginning of the first question, cut between words; empty without one."""
    first = next((turn for turn in conversation.turns if turn.role == "user"), None)
    if first is None:
        return ""
    text = display_name(first.text[: 20 * TITLE_CHARS])
    if len(text) <= TITLE_CHARS:
        return text
    cut = text[:TITLE_CHARS]
    at_space = cut.rpartition(" ")[0]
    return (at_space if len(at_space) > TITLE_CHARS // 2 else cut).rstrip(" ,.;:") + "…"
