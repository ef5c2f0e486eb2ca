"""A selection is the text between its two ends, whichever comes first."""

from __future__ import annotations

import itertools

import pytest

from moelauncher.gui.chats.chat_selection import ChatSelection, TextPlace
from moelauncher.gui.chats.reply_message import ReplyMessage
from moelauncher.gui.chats.user_message import UserMessage

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.fixture
def messages():
    reply = ReplyMessage("m", show_label=True)
    reply.append("the answer", "", 0.0)
    result = [UserMessage("one\ntwo"), reply, UserMessage("three")]
    for message in result:
        message.lay_out(700)
    return result


def test_nothing_is_selected_at_first(messages):
    selection = ChatSelection()
    assert selection.empty
    assert selection.text(messages) == ""


def test_within_one_message(messages):
    selection = ChatSelection()
    selection.set(TextPlace(0, 0, 1), TextPlace(0, 0, 5))
    assert selection.text(messages) == "ne\nt"


def test_labels_are_not_selected(messages):
    selection = ChatSelection()
    selection.set(TextPlace(0, 0, 4), TextPlace(2, 0, 2))
    assert selection.text(messages) == "two\n\nthe answer\n\nth"
    assert selection.span(messages, 1, 0) is None
    assert selection.span(messages, 1, 1) == (0, 10)


def test_both_directions_select_the_same(messages):
    places = [TextPlace(0, 0, 2), TextPlace(1, 1, 3), TextPlace(2, 0, 1)]
    for one, other in itertools.combinations(places, 2):
        there, back = ChatSelection(), ChatSelection()
        there.set(one, other)
        back.set(other, one)
        assert there.text(messages) == back.text(messages) != ""


def test_an_end_behind_the_text_is_the_text_s_end(messages):
    selection = ChatSelection()
    selection.set(TextPlace(2, 0, 3), TextPlace(2, 0, 99))
    assert selection.text(messages) == "ee"
    selection.clear()
    assert selection.empty
