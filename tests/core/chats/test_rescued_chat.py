"""What could not be stored is joined with what is stored, and no text of either is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.chats.rescued_chat import (
    RescuedChat,
    merged,
    text_fingerprint,
    unstored,
)
from tests.helpers.kept_chats import kept

STORED = kept("a", ("one", "two"))
LONGER = replace(STORED, conversation=STORED.conversation.ask("three"))
RESCUED = RescuedChat(LONGER, text_fingerprint(STORED))


def test_a_chat_that_the_store_holds_is_not_unstored() -> None:
    reply_goes_on = LONGER.conversation.begin_reply("m").append("half")
    streaming = replace(LONGER, conversation=reply_goes_on)
    cut = replace(LONGER, conversation=reply_goes_on.cut())
    assert unstored([STORED], {"a": STORED}.get) == ()
    assert unstored([cut], {"a": streaming}.get) == (), "the store cuts it by itself"
    assert unstored([KeptChat("empty")], {}.get) == ()


@pytest.mark.parametrize(
    "changed",
    [
        LONGER,
        replace(STORED, title="Numbers"),
        replace(STORED, settings={"max_tokens": 9}),
        replace(STORED, conversation=replace(STORED.conversation, system="Be long.")),
        replace(STORED, conversation=STORED.conversation.leave_out([1])),
    ],
)
def test_a_chat_that_the_store_holds_otherwise_is_unstored(changed: KeptChat) -> None:
    (found,) = unstored([changed], {"a": STORED}.get)
    assert found == RescuedChat(changed, text_fingerprint(STORED))


def test_a_chat_that_was_never_stored_is_unstored() -> None:
    assert unstored([STORED], {}.get) == (RescuedChat(STORED, ""),)


def test_a_chat_that_is_stored_as_it_was_then_is_replaced() -> None:
    assert merged(RESCUED, STORED) == LONGER


def test_a_chat_that_is_not_there_comes_back_as_itself() -> None:
    assert merged(RESCUED, None) == LONGER
    assert merged(RescuedChat(LONGER), None) == LONGER


def test_text_that_is_there_already_is_not_stored_again() -> None:
    assert merged(RESCUED, LONGER) is None
    newer = LONGER.conversation.begin_reply("m").append("four")
    assert merged(RESCUED, replace(LONGER, conversation=newer)) is None


@pytest.mark.parametrize(
    "since",
    [
        replace(STORED, conversation=STORED.conversation.ask("otherwise")),
        replace(STORED, conversation=STORED.conversation.delete(2)),
        replace(STORED, title="Named since"),
    ],
)
def test_a_chat_that_was_changed_since_stays_and_the_rescued_one_stands_beside_it(
    since: KeptChat,
) -> None:
    chat = merged(RESCUED, since)
    assert chat is not None
    assert chat.id != "a"
    assert chat.title == "one (rescued)"
    assert chat.conversation == LONGER.conversation


def test_half_characters_count_as_what_is_stored_of_them() -> None:
    odd = kept("a", ("\ud83d", "two"))
    assert text_fingerprint(odd) == text_fingerprint(kept("a", ("?", "two")))
