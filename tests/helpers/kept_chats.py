"""Short conversations, whether two are the same, a store with a clock, and a look from outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.conversation import Conversation, Node
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.turn_json import details_of
from moelauncher.core.engine_protocol import GenerationStats, Sampling

STATS = GenerationStats("stop", 12, 3, 5, 100.0, None, 0.1, 0.4, 17)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def talk(*pairs: tuple[str, str]) -> Conversation:
    chat = Conversation(system="Be brief.")
    for question, answer in pairs:
        chat = chat.ask(question).begin_reply("m", Sampling(seed=7)).append(answer, "hm")
        chat = chat.finish(STATS, "24 layers on the CPU", 1.5)
    return chat


def kept(chat_id: str, *pairs: tuple[str, str]) -> KeptChat:
    return KeptChat(chat_id, talk(*pairs))


def same_talk(one: Conversation, other: Conversation) -> bool:
    """Whether both hold the same turns, and show the same of them."""
    return _content(one.path) == _content(other.path) and sorted(
        _content(one.nodes.values()), key=lambda row: row[0]
    ) == sorted(_content(other.nodes.values()), key=lambda row: row[0])


def _content(nodes: Iterable[Node]) -> list[tuple[int, tuple[object, ...]]]:
    """Nodes as comparable values: errors are equal only to themselves."""
    return [
        (n.key, (n.parent, n.turn.text, n.turn.reasoning, n.turn.state, details_of(n.turn)))
        for n in nodes
    ]


def reopened(path: Path) -> ChatStore:
    return ChatStore.open(path, now=Clock())


def stored_texts(chats_file: Path) -> list[str]:
    """The texts of all turns in the file, as another program reads them."""
    db = sqlite3.connect(chats_file.as_uri() + "?mode=ro", uri=True)
    try:
        return [row[0] for row in db.execute("SELECT text FROM turns ORDER BY key")]
    finally:
        db.close()
