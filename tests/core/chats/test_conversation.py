"""Turns of a chat become the messages that the engine is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import ChatMessage, GenerationStats
from moelauncher.core.errors import LauncherError

STATS = GenerationStats("stop", 12, 0, 5, 100.0, 20.0, 0.1, 0.4, 17)


def answered(conversation: Conversation, question: str, answer: str) -> Conversation:
    return conversation.ask(question).begin_reply("m").append(answer).finish(STATS)


def test_a_streamed_reply_is_the_sum_of_its_pieces():
    chat = Conversation().ask("hi").begin_reply("gpt-oss-20b")
    assert chat.streaming
    for piece in ("He", "llo", " 🙂"):
        chat = chat.append(piece, "")
    chat = chat.append("", "thinking")
    chat = chat.finish(STATS, "24 layers on the CPU")
    reply = chat.last_reply
    assert not chat.streaming
    assert (reply.text, reply.reasoning, reply.label) == ("Hello 🙂", "thinking", "gpt-oss-20b")
    assert (reply.state, reply.stats) == (TurnState.DONE, STATS)
    assert reply.placement_text == "24 layers on the CPU"


def test_an_older_conversation_is_left_as_it_was():
    before = Conversation().ask("hi")
    before.begin_reply().append("x")
    assert [turn.text for turn in before.turns] == ["hi"]


def test_messages_start_with_the_system_prompt_and_keep_reasoning_apart():
    chat = Conversation(system="Be brief.").ask("a").begin_reply().append("b", "why").finish(STATS)
    assert chat.messages() == (
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "a"),
        ChatMessage("assistant", "b", "why"),
    )


def test_a_blank_system_prompt_is_no_message():
    assert Conversation(system="  \n").ask("a").messages() == (ChatMessage("user", "a"),)


def test_a_failed_empty_reply_is_left_out_and_the_questions_joined():
    chat = Conversation().ask("first").begin_reply().fail(LauncherError("Out of memory."))
    chat = chat.ask("again")
    assert chat.messages() == (ChatMessage("user", "first\n\nagain"),)


def test_a_reply_that_failed_in_the_middle_keeps_its_text():
    chat = Conversation().ask("q").begin_reply().append("half an ans")
    chat = chat.fail(LauncherError("The device was lost."))
    assert chat.last_reply.error.message == "The device was lost."
    assert chat.messages()[-1] == ChatMessage("assistant", "half an ans")


def test_the_reply_to_come_is_not_part_of_its_own_prompt():
    chat = answered(Conversation(), "a", "b").ask("c").begin_reply()
    assert [message.role for message in chat.messages()] == ["user", "assistant", "user"]


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_blank_questions_are_refused(text):
    with pytest.raises(ValueError):
        Conversation().ask(text)


def test_only_an_open_reply_can_be_written_to():
    closed = answered(Conversation(), "a", "b")
    for act in (
        lambda: closed.append("x"),
        lambda: closed.finish(STATS),
        lambda: closed.fail(LauncherError("x")),
        lambda: Conversation().append("x"),
    ):
        with pytest.raises(ValueError):
            act()


def test_nothing_is_asked_while_a_reply_streams():
    chat = Conversation().ask("a").begin_reply()
    with pytest.raises(ValueError):
        chat.ask("b")
    with pytest.raises(ValueError):
        chat.begin_reply()


def test_no_reply_yet():
    assert Conversation().ask("a").last_reply is None


def test_a_question_that_is_answered_anew_is_given_even_where_it_was_left_out():
    chat = answered(answered(Conversation(), "one", "r1"), "two", "r2")
    first, reply = chat.path[0].key, chat.path[1].key
    out = chat.leave_out([first, reply])
    assert [m.content for m in out.regenerate(reply).messages()] == ["one"]
    alone = out.delete(reply)
    assert [m.content for m in alone.begin_reply().messages()] == ["one"]
    assert [m.content for m in alone.ask("more").messages()] == ["one\n\nmore"]
    cut = Conversation().ask("q").begin_reply().append("a").cut()
    cut = cut.leave_out(node.key for node in cut.path).go_on()
    assert [m.content for m in cut.messages_to_go_on()] == ["q", "a"]


def test_what_lies_beneath_a_turn_is_found_in_all_branches():
    chat = answered(answered(Conversation(), "a", "b"), "c", "d")
    chat = chat.regenerate(2).append("b2").finish(STATS).ask("e")
    assert chat.beneath(1) == frozenset(chat.nodes)
    assert chat.beneath(2) == {2, 3, 4}
    assert chat.beneath(5) == {5, 6}


def test_a_reply_that_goes_on_has_no_numbers_until_its_end():
    chat = Conversation().ask("2+2?").begin_reply("m").append("It i")
    stopped = chat.finish(replace(STATS, finish_reason="cancelled"))
    begun = stopped.go_on().append("s 4.").cut()
    assert begun.turns[-1].text == "It is 4." and begun.turns[-1].stats is None
    assert begun.turns[-1].can_go_on
