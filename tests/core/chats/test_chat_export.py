"""Chats leave as files and come back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.chats.chat_export import file_name, read_chat, to_json, to_markdown
from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError

STATS = GenerationStats("stop", 12, 3, 5, 100.0, 38.42, 0.1, 0.4, 17)


def chat(*texts: str) -> KeptChat:
    talk = Conversation(system="Be brief.")
    for question, answer in zip(texts[::2], texts[1::2], strict=True):
        talk = talk.ask(question).begin_reply("m-8B").append(answer, "hm").finish(STATS, "on GPU")
    return KeptChat("a", talk)


def test_json_keeps_everything() -> None:
    one = chat("hi", "hello", "why", "so")
    one = KeptChat("a", one.conversation.edit(3, "when").leave_out([1]), "My chat", {"x": 1})
    again = read_chat("x.json", to_json(one).encode())
    assert again.id != one.id
    assert (again.conversation, again.title, again.settings) == (
        one.conversation,
        "My chat",
        {"x": 1},
    )


def test_a_reply_that_was_being_written_is_imported_as_cut() -> None:
    talk = Conversation().ask("hi").begin_reply("m").append("half")
    again = read_chat("x.json", to_json(KeptChat("a", talk)).encode())
    assert again.conversation.turns[1].state is TurnState.CUT


def test_markdown_is_readable() -> None:
    assert to_markdown(chat("hi", "**hello**")) == (
        "# hi\n\n## System\n\nBe brief.\n\n## User\n\nhi\n\n"
        "## Assistant (m-8B, 38.4 tok/s, on GPU)\n\n**hello**\n"
    )


_LINES = st.sampled_from(["hi", "## User", "\\## System", "## Assistant (x)", "# Title", "", "- a"])
_TEXT = st.lists(_LINES, min_size=1).map("\n".join).filter(lambda text: bool(text.strip("\n")))


@given(st.lists(_TEXT, min_size=2, max_size=6).filter(lambda texts: len(texts) % 2 == 0))
def test_markdown_comes_back_whatever_the_texts_say(texts: list[str]) -> None:
    one = chat(*texts)
    again = read_chat("x.md", to_markdown(one).encode())
    assert again.conversation.system == "Be brief."
    assert [turn.text for turn in again.conversation.turns] == [text.strip("\n") for text in texts]
    assert again.conversation.turns[1].label == "m-8B"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xfe\x00binary", "no text"),
        (b"{", "no chat"),
        (b"[" * 200_000, "no chat"),
        (b"[]", "not exported by this program"),
        (b'{"format": "moelauncher-chat", "version": 99}', "newer version"),
        (b'{"format": "moelauncher-chat", "version": 1, "turns": [1, null, {}]}', "no turns"),
        (b"just words", "no heading"),
        (b"", "no heading"),
    ],
)
def test_files_that_are_no_chats_say_why(data: bytes, reason: str) -> None:
    with pytest.raises(LauncherError) as caught:
        read_chat("x.json", data)
    assert reason in caught.value.message
    assert "x.json" in caught.value.message


def test_damaged_turns_cost_their_own_branch_only() -> None:
    document = json.loads(to_json(chat("hi", "hello", "why", "so")))
    document["turns"][2]["parent"] = 77
    document["turns"].append({"key": 9, "parent": 9, "role": "user", "text": "circle"})
    document["turns"].append({"key": 10, "parent": 2, "role": "assistant", "text": "twice"})
    document["turns"][0]["stats"] = {"finish_reason": 3}
    again = read_chat("x.json", json.dumps(document).encode())
    assert [turn.text for turn in again.conversation.turns] == ["hi", "hello"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("a/b: c?", "a b c.md"),
        ("..", "chat.md"),
        ("", "chat.md"),
        ("x" * 300, "x" * 80 + ".md"),
        ("東京", "東京.md"),
    ],
)
def test_names_that_every_file_system_takes(title: str, name: str) -> None:
    assert file_name(title, ".md") == name


def test_half_characters_can_be_exported() -> None:
    chat = KeptChat("x", Conversation("b\ud83d").ask("a\ud83d"))
    assert "a?" in to_markdown(chat).encode().decode()
    back = read_chat("x.json", to_json(chat).encode())
    assert (back.conversation.system, back.conversation.turns[0].text) == ("b?", "a?")


def test_numbers_that_nobody_can_show_are_left_out() -> None:
    text = """{"format": "moelauncher-chat", "version": 1, "chosen": {"DIGITS": 1, "0": 1},
        "turns": [{"key": 1, "parent": 0, "role": "user", "text": "q", "state": "cut"},
        {"key": true, "parent": false, "role": "user", "text": "no key"},
        {"key": 2, "parent": 1, "role": "assistant", "text": "a", "thought_s": Infinity}]}"""
    back = read_chat("x.json", text.replace("DIGITS", "1" * 5000).encode()).conversation
    assert [turn.text for turn in back.turns] == ["q", "a"]
    assert back.turns[0].state is TurnState.DONE, "what a user wrote is never cut"
    assert back.turns[1].thought_s is None
