"""Bytes of tokens to text: characters whole, stop strings never shown."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.token_text import StopStrings, Utf8Joiner

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(TEXT, st.lists(st.integers(0, 10_000)))
def test_any_cut_of_any_text_gives_the_text_back(text: str, cuts: list[int]) -> None:
    joiner = Utf8Joiner()
    parts = [joiner.feed(piece) for piece in cut(text.encode("utf-8"), cuts)]
    assert "".join(parts) == text


@given(st.text(st.characters(exclude_characters="\ufffd", exclude_categories=("Cs",)), min_size=1))
def test_unfinished_characters_are_never_shown(text: str) -> None:
    data = text.encode("utf-8")
    for length in range(len(data)):
        shown = Utf8Joiner().feed(data[:length])
        assert text.startswith(shown)
        assert "\ufffd" not in shown


def test_bytes_that_are_no_utf8_do_not_stop_the_text() -> None:
    joiner = Utf8Joiner()
    assert joiner.feed(b"a\xff") + joiner.feed(b"b") == "a\ufffdb"


@given(TEXT, st.lists(st.text(max_size=4), max_size=3), st.lists(st.integers(0, 10_000)))
def test_text_ends_before_the_first_stop_string(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    check_stops(text, stops, cuts)


@given(
    st.text("ab", max_size=30),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 100)),
)
def test_stop_strings_that_overlap_themselves(text: str, stops: list[str], cuts: list[int]) -> None:
    check_stops(text, stops, cuts)


def check_stops(text: str, stops: list[str], cuts: list[int]) -> None:
    filter_ = StopStrings(stops)
    edges = [0, *sorted(at % (len(text) + 1) for at in cuts), len(text)]
    shown = ""
    for a, b in itertools.pairwise(edges):
        shown += filter_.feed(text[a:b])
        assert not any(stop and stop in shown for stop in stops)
    shown += filter_.flush()
    ends = [text.find(stop) for stop in stops if stop and stop in text]
    assert filter_.hit == bool(ends)
    if not ends:
        assert shown == text
    else:
        # The stop that is complete first ends the text; no later one starts before it.
        assert text.startswith(shown)
        assert any(text.startswith(stop, len(shown)) for stop in stops if stop)


def test_only_what_may_become_a_stop_string_is_held_back() -> None:
    filter_ = StopStrings(("User:",))
    assert filter_.feed("well, U") == "well, "
    assert filter_.feed("se") == ""
    assert filter_.feed("ful") == "Useful"
    assert filter_.flush() == ""
