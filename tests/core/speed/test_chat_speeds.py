"""The fastest reply of each model is remembered, and short ones are not believed."""

from __future__ import annotations

import math

import pytest

from moelauncher.core.speed.chat_speeds import (
    LEAST_TOKENS,
    known_reply,
    speed_text,
    with_reply,
)


def test_the_fastest_reply_is_kept() -> None:
    stored = with_reply(None, "/m.gguf", 30.0, 100, 24, 40)
    assert speed_text(stored, "/m.gguf") == (
        "30.0 tok/s in a chat here, with 24 of 40 expert layers on the CPU"
    )
    assert with_reply(stored, "/m.gguf", 29.0, 100, 20, 40) is None
    faster = with_reply(stored, "/m.gguf", 38.44, 100, 20, 40)
    assert "38.4 tok/s" in speed_text(faster, "/m.gguf")
    assert speed_text(faster, "/other.gguf") == ""
    dense = with_reply(faster, "/d.gguf", 50.0, 100, 0, 0)
    assert speed_text(dense, "/d.gguf") == "50.0 tok/s in a chat here"


@pytest.mark.parametrize(("tok_s", "n_tokens"), [(None, 100), (0.0, 100), (30.0, LEAST_TOKENS - 1)])
def test_what_says_little_is_not_kept(tok_s: float | None, n_tokens: int) -> None:
    assert with_reply(None, "/m.gguf", tok_s, n_tokens, 0, 0) is None


@pytest.mark.parametrize("stored", [None, 5, {"/m": 5}, {"/m": {"tok_s": "x"}}, {"/m": {}}])
def test_nonsense_says_nothing(stored: object) -> None:
    assert speed_text(stored, "/m") == ""
    assert with_reply(stored, "/m", 5.0, 100, 0, 0) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        *({"tok_s": tok_s} for tok_s in ("9", True, 0, -1.0, math.nan, None)),
        *({name: number} for name in ("cpu_moe", "of") for number in (True, "2", 2.0, None)),
    ],
)
def test_one_wrong_value_makes_the_whole_nonsense(wrong: dict[str, object]) -> None:
    stored = {"tok_s": 9, "cpu_moe": 2, "of": 4}
    assert known_reply({"/m": stored}, "/m") == (9.0, 2, 4)
    assert known_reply({"/m": stored | wrong}, "/m") is None
