"""Chats that an end of the program could not store, and what becomes of them in the store.

In: a chat as it was in the program's hands, and as it is in the store. Out: the chat to be
stored, which never loses text that the store got since. Pure; any thread.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from moelauncher.core.chats.conversation import Node
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from moelauncher.core.text_cleaning import writable_text
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class RescuedChat:
    """``chat`` could not be stored; ``stored_text`` is the fingerprint of what was stored of it
    by then, "" where nothing was."""

    chat: KeptChat
    stored_text: str = ""


@dataclass(frozen=True)
class Rescue:
    """All that one end of the program could not store. ``when_s``: seconds since 1970."""

    chats: tuple[RescuedChat, ...]
    when_s: float
    #: The chat that was shown; "" where that is none of these.
    shown: str = ""
    #: Another one for every rescue: it is taken in once.
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


def text_fingerprint(chat: KeptChat | None) -> str:
    """What was said, and the chat's name and system prompt, as a short text; "" for no chat.

    A reply that was being written counts as cut off, as it does when the store is opened again.
    """
    if chat is None:
        return ""
    said = [writable_text(chat.title), writable_text(chat.conversation.system), *_said(chat)]
    return hashlib.sha256(json.dumps(said).encode("ascii")).hexdigest()


def unstored(
    chats: Iterable[KeptChat], stored: Callable[[str], KeptChat | None]
) -> tuple[RescuedChat, ...]:
    """Those of ``chats`` that are another one in the store. ``stored``: by id, what is in it."""
    found = []
    for chat in chats:
        before = stored(chat.id)
        if chat.conversation.nodes and (before is None or _parts(before) != _parts(chat)):
            found.append(RescuedChat(chat, text_fingerprint(before)))
    return tuple(found)


def merged(rescued: RescuedChat, stored: KeptChat | None) -> KeptChat | None:
    """What is to be stored, now that ``stored`` is there; None: nothing is missing.

    Where the store has other text by now, the rescued one becomes a chat of its own.
    """
    chat = rescued.chat
    if stored is None or text_fingerprint(stored) == rescued.stored_text:
        return chat
    if set(_said(chat)) <= set(_said(stored)):
        return None
    title = tr("{title} (rescued)").format(title=chat.shown_title)
    return replace(chat, id=new_chat_id(), title=title)


def _said(chat: KeptChat) -> list[str]:
    nodes = chat.conversation.cut().nodes
    return [_turn_text(nodes[key]) for key in sorted(nodes)]


def _turn_text(node: Node) -> str:
    turn = node.turn
    texts = (writable_text(turn.text), writable_text(turn.reasoning), turn.state.value)
    return json.dumps([node.key, node.parent, turn.role, *texts])


def _parts(chat: KeptChat) -> tuple[object, ...]:
    """All that a chat is stored with."""
    talk = chat.conversation.cut()
    return (chat.title, chat.settings, talk.system, talk.nodes, talk.chosen, talk.left_out)
