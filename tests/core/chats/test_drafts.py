"""What is being written stays with its chat."""

from __future__ import annotations

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.chats.drafts import Draft, Drafts
from moelauncher.core.chats.kept_chat import KeptChat

TALK = KeptChat("a", Conversation().ask("Hello"))


def test_a_draft_waits_for_its_chat_and_is_taken_once() -> None:
    drafts = Drafts()
    drafts.leave(TALK, Draft("half a thou", editing=1, edited_text="Hello?"))
    assert drafts.take(KeptChat("b", TALK.conversation)) == Draft()
    assert drafts.take(TALK) == Draft("half a thou", 1, "Hello?")
    assert drafts.take(TALK) == Draft()


def test_nothing_is_no_draft_and_takes_an_earlier_one_away() -> None:
    drafts = Drafts()
    drafts.leave(TALK, Draft("something"))
    drafts.leave(TALK, Draft(" \n"))
    assert drafts.take(TALK) == Draft()


def test_empty_chats_are_one() -> None:
    drafts = Drafts()
    drafts.leave(KeptChat("new"), Draft("for later"))
    assert drafts.take(KeptChat("newer")) == Draft("for later")
