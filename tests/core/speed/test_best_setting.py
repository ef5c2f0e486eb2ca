"""The best setting of each model: measurements before chats, and only what is believable."""

from __future__ import annotations

import json

import pytest

from moelauncher.core.speed.best_setting import BestSetting, best_setting, with_tuned
from moelauncher.core.speed.chat_speeds import with_reply

PATH = "/models/a.gguf"


def test_measurements_come_before_a_reply() -> None:
    replies = with_reply(None, PATH, 50.0, 100, 20, 40)
    heard = best_setting(None, replies, PATH)
    assert heard == BestSetting(50.0, 20, 40, tuned=False)
    tuned = with_tuned(None, PATH, BestSetting(38.0, 24, 40, tuned=True))
    best = best_setting(json.loads(json.dumps(tuned)), replies, PATH)
    assert best is not None and best.tuned
    assert best.text == "24 of 40 layers on CPU · 38 tok/s"
    # The measurements are gone, or were another machine's.
    assert best_setting(with_tuned(tuned, PATH, None), replies, PATH) == heard
    assert best_setting(tuned, replies, "/other.gguf") is None


@pytest.mark.parametrize(
    ("n", "of", "text"),
    [(0, 40, "all on the GPU · 38 tok/s"), (0, 0, "38 tok/s here")],
)
def test_what_lies_in_one_place_says_so(n: int, of: int, text: str) -> None:
    assert BestSetting(38.0, n, of, tuned=True).text == text


@pytest.mark.parametrize("stored", [5, [], {PATH: 5}, {PATH: {}}, {PATH: {"tok_s": -1, "n": 0}}])
def test_nonsense_is_no_setting(stored: object) -> None:
    assert best_setting(stored, stored, PATH) is None
    assert with_tuned(stored, PATH, BestSetting(1.0, 0, 0, tuned=True))[PATH] is not None
