"""Search over the texts, the thinking and the titles of all chats.

In: what the user typed. Out: the chats that hold every word of it, with the place of a hit.
Words of three letters and more are found by the trigram index, shorter ones (a Japanese word
has often two) by looking at the texts.
"""

from __future__ import annotations

import sqlite3

from moelauncher.core.text_cleaning import display_name

#: The trigram index knows nothing shorter.
_INDEXED_CHARS = 3
SNIPPET_BEFORE = 24
SNIPPET_CHARS = 90


def find_chats(db: sqlite3.Connection, query: str) -> dict[str, str]:
    """The ids of the chats that hold all words of ``query``, with a snippet of a hit each."""
    # SQLite's own LIKE and lower() know the case of no letter beyond ASCII.
    db.create_function("folded", 1, str.casefold, deterministic=True)
    found: dict[str, str] | None = None
    for word in query.split():
        hits = _hits(db, word)
        if found is None:
            found = hits
        else:
            found = {
                chat_id: snippet or hits[chat_id]
                for chat_id, snippet in found.items()
                if chat_id in hits
            }
    return found or {}


def snippet_around(text: str, word: str) -> str:
    """A line of ``text`` around the first place of ``word``."""
    at = text.casefold().find(word.casefold())
    start = max(0, at - SNIPPET_BEFORE)
    cut = display_name(text[start : start + 3 * SNIPPET_CHARS])[:SNIPPET_CHARS]
    return ("…" if start else "") + cut


def _hits(db: sqlite3.Connection, word: str) -> dict[str, str]:
    like = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    if len(word) >= _INDEXED_CHARS:
        rows = db.execute(
            "SELECT chat_id, turns.text, turns.reasoning"
            " FROM turn_words JOIN turns ON turns.id = turn_words.rowid"
            " WHERE turn_words MATCH ? ORDER BY turns.id",
            ('"' + word.replace('"', '""') + '"',),
        )
    else:
        rows = db.execute(
            "SELECT chat_id, text, reasoning FROM turns WHERE text LIKE :like ESCAPE '\\'"
            " OR reasoning LIKE :like ESCAPE '\\' OR instr(folded(text), :word)"
            " OR instr(folded(reasoning), :word) ORDER BY id",
            {"like": like, "word": word.casefold()},
        )
    found: dict[str, str] = {}
    for chat_id, text, reasoning in rows:
        if chat_id not in found:
            said = word.casefold() in text.casefold()
            found[chat_id] = snippet_around(text if said else reasoning, word)
    titled = db.execute(
        "SELECT id FROM chats WHERE instr(folded(title), ?) OR instr(folded(auto_title), ?)",
        (word.casefold(), word.casefold()),
    )
    for (chat_id,) in titled:
        found.setdefault(chat_id, "")
    return found
