"""Settings of one chat, laid over those of the program."""

from __future__ import annotations

import pytest

from moelauncher.core.chats.chat_settings import read_typed, reply_settings
from moelauncher.core.engine_protocol import Sampling
from moelauncher.core.errors import LauncherError

USUAL = Sampling(temperature=0.8, top_k=40)


def test_what_is_typed_is_laid_over_the_usual() -> None:
    chat = read_typed({"temperature": "0,2", "seed": " 7 ", "max_tokens": "50"}, "END\n\\n\\n\n")
    wanted = reply_settings(USUAL, None, chat)
    assert wanted.sampling == Sampling(temperature=0.2, top_k=40, seed=7)
    assert (wanted.max_tokens, wanted.stop) == (50, ("END", "\n\n"))


def test_empty_fields_mean_as_usual() -> None:
    assert read_typed({"temperature": " ", "seed": ""}, "\n\n") == {}
    usual = reply_settings(USUAL, 99, {})
    assert (usual.sampling, usual.max_tokens, usual.stop) == (USUAL, 99, ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("temperature", "hot"),
        ("temperature", "nan"),
        ("temperature", "-1"),
        ("top_k", "1.5"),
        ("top_p", "2"),
        ("seed", "-3"),
        ("max_tokens", "0"),
        ("max_tokens", "1e9"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, text: str) -> None:
    with pytest.raises(LauncherError) as caught:
        read_typed({name: text}, "")
    assert text in caught.value.message


@pytest.mark.parametrize("chat", [{"temperature": "x"}, {"stop": 3}, {"stop": [1, ""]}, {"a": 1}])
def test_a_kept_setting_that_makes_no_sense_is_passed_over(chat: dict[str, object]) -> None:
    wanted = reply_settings(USUAL, None, chat)
    assert (wanted.sampling, wanted.stop) == (USUAL, ())
