"""A reply goes on in its own chat, whichever one is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.open_chats import OpenChats
from moelauncher.core.chats.turn import TurnState
from moelauncher.core.engine_protocol import GenerationStats

STATS = GenerationStats("stop", 3, 0, 2, None, None, None, 0.1, 5)
ASKED = KeptChat("a", Conversation().ask("Why?").begin_reply("m"))
OTHER = KeptChat("b", Conversation().ask("Hello").begin_reply("m").append("Hi").finish(STATS))


def grown(chat: KeptChat, text: str) -> KeptChat:
    return replace(chat, conversation=chat.conversation.append(text))


def test_the_reply_goes_on_in_its_chat_while_another_is_shown() -> None:
    chats = OpenChats(ASKED).show(OTHER)
    assert (chats.shown, chats.answering) == (OTHER, ASKED)
    chats = chats.with_answered(grown(ASKED, "Because"))
    assert chats.shown == OTHER and chats.away is not None
    assert chats.away.conversation.turns[-1].text == "Because"
    # What the disk has of it is older.
    back = chats.show(ASKED)
    assert back.shown.conversation.turns[-1].text == "Because"
    assert back.away is None and back.answering is back.shown


def test_a_reply_that_ended_out_of_sight_is_no_longer_in_hand() -> None:
    chats = OpenChats(ASKED).show(OTHER)
    done = replace(ASKED, conversation=ASKED.conversation.append("So").finish(STATS))
    chats = chats.with_answered(done)
    assert (chats.shown, chats.away, chats.answering) == (OTHER, None, None)
    with pytest.raises(ValueError, match="no reply"):
        chats.with_answered(done)


def test_there_is_one_reply_at_a_time() -> None:
    chats = OpenChats(ASKED).show(OTHER)
    second = replace(OTHER, conversation=OTHER.conversation.ask("And?").begin_reply("m"))
    with pytest.raises(ValueError, match="one reply"):
        chats.with_shown(second)
    with pytest.raises(ValueError, match="no reply"):
        chats.with_answered(OTHER)
    # Nobody writes what a file says to be in progress.
    chats = chats.show(KeptChat("c", ASKED.conversation))
    assert chats.shown.conversation.turns[-1].state is TurnState.CUT
    assert chats.away is ASKED


def test_either_can_be_renamed() -> None:
    chats = OpenChats(ASKED).show(OTHER)
    chats = chats.renamed("a", "First").renamed("b", "Second").renamed("c", "Nobody")
    assert chats.away is not None
    assert (chats.away.title, chats.shown.title) == ("First", "Second")
