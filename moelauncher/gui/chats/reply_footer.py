"""The small lines around a reply: its numbers, its thinking time, the prompt's progress.

In: the engine's numbers. Out: text. Unknown numbers are left out, never shown as 0.
"""

from __future__ import annotations

import math

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.core.translate import tr
from moelauncher.core.units import format_duration, format_rate, unbroken


def footer_runs(stats: GenerationStats, placement_text: str) -> list[tuple[str, bool]]:
    """The line under a finished reply, as (text, strong) runs."""
    runs: list[tuple[str, bool]] = []
    rest: list[str] = []
    if stats.tok_s is not None:
        figure, space, unit = format_rate(stats.tok_s).partition(" ")
        runs = [(figure, True), (unbroken(space + unit), False)]
    rest.append(_counted(stats.completion_tokens, tr("1 token"), tr("{n} tokens")))
    rest.append(_prompt(stats))
    rest.append(placement_text)
    rest.append(_ending(stats.finish_reason))
    # A narrow column breaks the line between these, not within them.
    tail = " · ".join(unbroken(text) for text in rest if text)
    if tail:
        runs.append((" · " + tail if runs else tail, False))
    return runs


def thought_text(thought_s: float | None, thinking: bool) -> str:
    """What the fold of the thinking block says."""
    if thought_s is None:
        return tr("thinking") if thinking else tr("thought")
    text = tr("thinking for {time}") if thinking else tr("thought for {time}")
    return text.format(time=duration_text(thought_s))


def prompt_progress_text(reading: PromptReading | None) -> str:
    """What is shown before the first token."""
    if reading is None:
        return tr("Waiting for the first token")
    if reading.total <= 0 or reading.done >= reading.total:
        return tr("Prompt read, waiting for the first token")
    parts = [
        tr("Reading the prompt: {done} of {total} tokens").format(
            done=f"{reading.done:,}", total=f"{reading.total:,}"
        )
    ]
    if reading.tok_s is not None:
        parts.append(format_rate(reading.tok_s))
    elif reading.waited_s >= 1:
        # Nothing is known within llama.cpp's first piece, but that time goes by shows.
        parts.append(tr("{time} so far").format(time=_whole_seconds(reading.waited_s)))
    if reading.left_s is not None:
        left = tr("{time} left") if reading.tok_s is not None else tr("about {time} left")
        parts.append(left.format(time=_whole_seconds(reading.left_s)))
    return " · ".join(parts)


def _whole_seconds(seconds: float) -> str:
    """A time that runs while one looks at it: its tenths would only flicker."""
    return format_duration(max(math.ceil(seconds), 1))


def duration_text(seconds: float) -> str:
    """A short span of time to the tenth, since thinking takes seconds: "4.2 s", "38 s", "3 min"."""
    if seconds < 9.95:
        return tr("{n} s").format(n=f"{max(seconds, 0.0):.1f}")
    return format_duration(seconds)


def _prompt(stats: GenerationStats) -> str:
    text = tr("prompt {n}").format(n=f"{stats.prompt_tokens:,}")
    rate = stats.told_prompt_tok_s
    if rate is not None:
        text = tr("{prompt} at {rate}").format(prompt=text, rate=format_rate(rate))
    if stats.cached_tokens:
        # Last, since the rate is that of the other tokens.
        cached = f"{stats.cached_tokens:,}"
        text = tr("{prompt}, {cached} cached").format(prompt=text, cached=cached)
    return text


def _ending(reason: str) -> str:
    return {
        "length": tr("ended at the token limit"),
        "context_full": tr("ended because the context is full"),
        "cancelled": tr("stopped"),
    }.get(reason, "")


def _counted(n: int, one: str, many: str) -> str:
    return one if n == 1 else many.format(n=f"{n:,}")
