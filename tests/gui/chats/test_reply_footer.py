"""The lines around a reply say what is known, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.core.units import NO_BREAK_SPACE
from moelauncher.gui.chats.reply_footer import (
    footer_runs,
    prompt_progress_text,
    thought_text,
)

STATS = GenerationStats("stop", 412, 0, 212, 310.0, 38.4, 0.2, 6.0, 624)


def footer(stats: GenerationStats, placement: str = "") -> str:
    return "".join(text for text, _ in footer_runs(stats, placement)).replace(NO_BREAK_SPACE, " ")


def test_the_whole_line():
    assert footer(STATS, "24 layers on the CPU") == (
        "38.4 tok/s · 212 tokens · prompt 412 at 310 tok/s · 24 layers on the CPU"
    )
    assert footer_runs(STATS, "")[0] == ("38.4", True)


def test_a_narrow_line_breaks_between_the_parts_only():
    whole = "".join(text for text, _ in footer_runs(STATS, "24 layers on the CPU"))
    assert whole.split(" ")[::2] == [
        part.replace(" ", NO_BREAK_SPACE)
        for part in (
            "38.4 tok/s",
            "212 tokens",
            "prompt 412 at 310 tok/s",
            "24 layers on the CPU",
        )
    ]


def test_unknown_rates_are_left_out():
    stats = replace(STATS, tok_s=None, prompt_tok_s=None, completion_tokens=1)
    assert footer(stats) == "1 token · prompt 412"


def test_a_few_tokens_tell_no_rate_of_the_prompt():
    assert "prompt 412, 405 cached" in footer(replace(STATS, cached_tokens=405))
    assert "prompt 412 at 310 tok/s, 404 cached" in footer(replace(STATS, cached_tokens=404))


def test_cached_tokens_are_told():
    assert "prompt 412 at 310 tok/s, 400 cached" in footer(replace(STATS, cached_tokens=400))


@pytest.mark.parametrize(
    ("reason", "words"),
    [("length", "token limit"), ("context_full", "context is full"), ("cancelled", "stopped")],
)
def test_an_early_end_is_told(reason, words):
    assert words in footer(replace(STATS, finish_reason=reason))


@pytest.mark.parametrize(
    ("seconds", "thinking", "text"),
    [
        (4.2, False, "thought for 4.2 s"),
        (38.4, False, "thought for 38 s"),
        (0.0, True, "thinking for 0.0 s"),
        (None, False, "thought"),
        (None, True, "thinking"),
    ],
)
def test_thinking_time(seconds, thinking, text):
    assert thought_text(seconds, thinking) == text


def test_prompt_progress():
    assert prompt_progress_text(PromptReading(1024, 2000, 310.0, 3.1, 3.3)) == (
        "Reading the prompt: 1,024 of 2,000 tokens · 310 tok/s · 4 s left"
    )
    assert prompt_progress_text(PromptReading(0, 2000)) == "Reading the prompt: 0 of 2,000 tokens"
    assert "waiting for the first token" in prompt_progress_text(PromptReading(5, 5))
    assert "Waiting" in prompt_progress_text(None)


def test_a_prompt_within_its_first_piece_shows_that_time_goes_by():
    assert prompt_progress_text(PromptReading(0, 2000, None, None, 8.2)) == (
        "Reading the prompt: 0 of 2,000 tokens · 9 s so far"
    )
    assert prompt_progress_text(PromptReading(0, 2000, None, 21.6, 8.2)) == (
        "Reading the prompt: 0 of 2,000 tokens · 9 s so far · about 22 s left"
    )
