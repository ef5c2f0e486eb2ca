"""The time of thinking: from its first word to the answer's first, or to the end."""

from __future__ import annotations

import pytest

from moelauncher.core.chats.turn import Turn
from moelauncher.gui.chats.thought_clock import ThoughtClock


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def clock(now):
    made = ThoughtClock(lambda: now[0])
    made.begin()
    return made


def test_a_reply_that_does_not_think(clock, now):
    clock.hear("Hello", "")
    now[0] = 105.0
    assert clock.end() is None


def test_until_the_answer_begins(clock, now):
    clock.hear("", "hm")
    now[0] = 104.0
    clock.hear("So", "")
    now[0] = 109.0
    clock.hear(" it is", "")
    assert clock.end() == 4.0
    clock.begin()
    assert clock.end() is None


def test_one_that_is_stopped_while_it_thinks(clock, now):
    clock.hear("", "hm")
    now[0] = 103.0
    assert clock.end() == 3.0


def test_one_that_goes_on_keeps_its_time(clock, now):
    clock.begin(Turn("assistant", "It i", thought_s=7.0))
    now[0] = 120.0
    clock.hear("s", "")
    assert clock.end() == 7.0
