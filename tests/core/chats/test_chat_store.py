"""Chats are kept, found and never lost."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from moelauncher.core.chats import chat_schema
from moelauncher.core.chats.chat_store import ChatStore
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.errors import TemplateRefused
from tests.helpers.kept_chats import STATS, kept, reopened, talk


def test_a_chat_comes_back_as_it_was(store: ChatStore, path: Path) -> None:
    chat = replace(kept("a", ("hi", "hello"), ("why", "so")), settings={"max_tokens": 9})
    chat = replace(chat, conversation=chat.conversation.edit(3, "when").leave_out([1, 2]))
    store.save(chat)
    other = reopened(path)
    assert other.load("a") == chat
    assert other.load("b") is None
    other.close()


def test_only_what_changed_is_written(store: ChatStore) -> None:
    chat = kept("a", *((f"question {n}", "answer " * 50) for n in range(50)))
    store.save(chat)
    written: list[str] = []
    store._db.set_trace_callback(written.append)
    talk_on = chat.conversation.ask("one more")
    store.save(replace(chat, conversation=talk_on))
    store._db.set_trace_callback(None)
    assert len({line for line in written if line.startswith("INSERT INTO turns")}) == 1


def test_deleted_turns_are_gone(store: ChatStore, path: Path) -> None:
    chat = kept("a", ("hi", "hello"), ("secret", "word"))
    store.save(chat)
    chat = replace(chat, conversation=chat.conversation.delete(3))
    store.save(chat)
    again = store.load("a")
    assert again is not None
    assert again.conversation.nodes == chat.conversation.nodes
    assert store.rows("secret") == []


def test_a_reply_in_progress_is_found_cut(store: ChatStore, path: Path) -> None:
    running = Conversation().ask("hi").begin_reply("m").append("half a sen")
    store.save(KeptChat("a", running))
    other = reopened(path)
    chat = other.load("a")
    other.close()
    assert chat is not None
    assert chat.conversation.last_reply is not None
    assert chat.conversation.last_reply.text == "half a sen"
    assert chat.conversation.last_reply.state is TurnState.CUT
    assert chat.conversation.last_reply.can_go_on


def test_a_reply_is_cut_in_what_is_read_though_the_file_says_otherwise(
    store: ChatStore, path: Path
) -> None:
    """Its later text could not be saved, or the file can only be read."""
    running = Conversation().ask("hi").begin_reply("m").append("half a sen")
    store.save(KeptChat("a", running))
    found = store.load("a")
    copy = store.load(store.duplicate("a"))
    for chat in (found, copy):
        assert chat is not None and not chat.conversation.streaming
        assert chat.conversation.turns[-1].state is TurnState.CUT
    assert found is not None
    store.save(found)
    with sqlite3.connect(path) as file:
        assert {row[0] for row in file.execute("SELECT state FROM turns")} == {"done", "cut"}


def test_rows_are_the_newest_first_and_named_by_their_first_words(store: ChatStore) -> None:
    store.save(kept("a", ("How does a router pick its experts, and why so few of them? " * 3, "x")))
    store.save(kept("b", ("two", "x")))
    store.save(KeptChat("empty"))
    rows = store.rows()
    assert [row.id for row in rows] == ["b", "a"]
    assert rows[1].title == "How does a router pick its experts, and why so few of them?…"
    assert (rows[0].n_turns, rows[0].label) == (2, "m")
    store.rename("a", "  Routers\n ")
    assert store.rows()[1].title == "Routers"
    store.rename("a", "")
    assert store.rows()[1].title.startswith("How does")


def test_looking_at_another_version_is_no_news(store: ChatStore) -> None:
    chat = kept("a", ("hi", "x"))
    chat = replace(chat, conversation=chat.conversation.edit(1, "ho"))
    store.save(chat)
    store.save(kept("b", ("two", "x")))
    store.save(replace(chat, conversation=chat.conversation.choose(1)))
    assert [row.id for row in store.rows()] == ["b", "a"]
    again = store.load("a")
    assert again is not None
    assert again.conversation.turns[0].text == "hi"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("expert", ["a"]),
        ("EXPERT", ["a"]),
        ("expert weights", ["a"]),
        ("expert nothing", []),
        ("東京", ["b"]),
        ("東", ["b"]),
        ("東京タワー", ["b"]),
        ("100%", ["c"]),
        ("%", ["c"]),
        ('"quo', ["c"]),
        ("a", ["a", "c"]),
        ("AND", []),
        ("*", []),
        ("  ", ["c", "b", "a"]),
    ],
)
def test_search(store: ChatStore, query: str, found: list[str]) -> None:
    store.save(kept("a", ("What is an expert?", "Some weights.")))
    store.save(kept("b", ("東京タワーはどこ", "港区です")))
    store.save(kept("c", ('It is 100% "quoted" says', "x")))
    assert sorted(row.id for row in store.rows(query)) == sorted(found)
    assert [row.snippet for row in store.rows("weights")] == ["Some weights."]


def test_a_reply_is_found_once_it_is_finished(store: ChatStore) -> None:
    chat = Conversation().ask("hi").begin_reply("m")
    for word in ("elephant ", "and ", "mouse"):
        chat = chat.append(word)
        store.save(KeptChat("a", chat))
        assert store.rows("elephant") == []
    store.save(KeptChat("a", chat.finish(STATS)))
    assert [row.snippet for row in store.rows("mouse")] == ["elephant and mouse"]
    store._db.execute("INSERT INTO turn_words (turn_words) VALUES ('integrity-check')")


def test_what_was_thought_is_found_too(store: ChatStore) -> None:
    chat = Conversation().ask("hi").begin_reply("m").append("hello", "the 象 is grey").finish(STATS)
    store.save(KeptChat("a", chat))
    for query, snippet in (
        ("grey", "the 象 is grey"),
        ("象", "the 象 is grey"),
        ("hello GREY", "hello"),
    ):
        assert [row.snippet for row in store.rows(query)] == [snippet]


def test_a_file_of_the_first_version_is_searched_whole(path: Path) -> None:
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path)
    for statement in chat_schema._STEPS[0]:
        db.execute(statement)
    db.execute("PRAGMA user_version = 1")
    db.execute("INSERT INTO chats (id, created_s, updated_s) VALUES ('a', 1, 1)")
    add = (
        "INSERT INTO turns (chat_id, key, parent, role, text, reasoning, state)"
        " VALUES ('a', ?, ?, ?, ?, ?, ?)"
    )
    db.execute(add, (1, 0, "user", "an elephant", "", "done"))
    db.execute(add, (2, 1, "assistant", "a mouse", "it is grey", "done"))
    db.execute(add, (3, 1, "assistant", "a half-written walrus", "", "streaming"))
    db.commit()
    db.close()
    opened = reopened(path)
    try:
        for query in ("elephant", "mouse", "grey"):
            assert [row.id for row in opened.rows(query)] == ["a"], query
        opened._db.execute("DELETE FROM turns WHERE key < 3")
        assert opened.rows("grey") == []
        opened._db.execute("INSERT INTO turn_words (turn_words) VALUES ('integrity-check')")
    finally:
        opened.close()


def test_delete_undo_and_what_the_next_start_finds(store: ChatStore, path: Path) -> None:
    store.save(kept("a", ("hi", "x")))
    store.save(kept("b", ("ho", "x")))
    store.delete("a")
    assert [row.id for row in store.rows()] == ["b"]
    assert store.load("a") is None
    store.undelete("a")
    assert store.load("a") is not None
    store.delete("b")
    other = reopened(path)
    assert [row.id for row in other.rows()] == ["a"]
    assert other._db.execute("SELECT count(*) FROM turns WHERE chat_id = 'b'").fetchone() == (0,)
    other._db.execute("INSERT INTO turn_words (turn_words) VALUES ('integrity-check')")
    other.close()


def test_a_duplicate_lives_on_its_own(store: ChatStore) -> None:
    store.save(kept("a", ("hi", "x")))
    copy = store.load(store.duplicate("a"))
    assert copy is not None
    assert copy.id != "a"
    assert copy.shown_title == "hi (copy)"
    store.save(replace(copy, conversation=copy.conversation.ask("more")))
    original = store.load("a")
    assert original is not None
    assert len(original.conversation.turns) == 2
    assert store.duplicate("nobody") == ""


def test_the_last_shown_chat(store: ChatStore, path: Path) -> None:
    assert store.last_shown == ""
    store.set_last_shown("a")
    other = reopened(path)
    assert other.last_shown == "a"
    other.close()


def test_half_characters_do_no_harm(store: ChatStore) -> None:
    chat = kept("a", ("\ud83d \x00 é", "x"))
    store.save(chat)
    again = store.load("a")
    assert again is not None
    assert again.conversation.turns[0].text == "? \x00 é"


# Files that are not as they should be


def test_a_template_that_refused_is_known_as_such_later(tmp_path: Path) -> None:
    chat = Conversation().ask("a").begin_reply().fail(TemplateRefused("no", "so", "why"))
    store = ChatStore.open(tmp_path / "chats.sqlite3")
    store.save(KeptChat("x", chat))
    kept = store.load("x")
    store.close()
    assert kept is not None
    error = kept.conversation.turns[-1].error
    assert isinstance(error, TemplateRefused)
    assert (error.message, error.hint, error.details) == ("no", "so", "why")


def test_half_characters_outside_of_turns_do_no_harm(store: ChatStore) -> None:
    half = "a\ud83d"
    chat = KeptChat("x", replace(talk(("q", "a")), system=half), half, {"stop": [half]})
    store.save(chat)
    store.rename("x", "b\ud83d")
    kept = store.load("x")
    assert kept is not None
    assert (kept.conversation.system, kept.title) == ("a?", "b?")
    assert kept.settings == {"stop": ["a?"]}
    assert store.rows(half) == []


@pytest.mark.parametrize("query", ["ии", "ИИ", "ÜB", "ünï", "STRASSE", "ünïcode ии"])
def test_search_knows_the_case_of_all_letters(store: ChatStore, query: str) -> None:
    store.save(KeptChat("x", Conversation().ask("ИИ über alles"), "Ünïcode Straße"))
    assert [row.id for row in store.rows(query)] == ["x"]
