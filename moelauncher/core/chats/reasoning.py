"""Keeps a model's thinking apart from its answer while both stream in.

In: the chat template (to know how this model marks its thinking), the rendered prompt
(which may have opened the block already), then text as it comes. Out: pairs of (answer,
reasoning). Pure; one splitter a reply, one thread.
"""

from __future__ import annotations

from typing import Protocol

from moelauncher.core.chats.answer_wrapping import (
    BARE,
    PART_END,
    PART_THOUGHT,
    SECTION_MARKS,
    AnswerUnwrapper,
    Wrapping,
    has_sections,
    wrapping_in,
)
from moelauncher.core.chats.channel_splitter import (
    CHANNEL,
    HEADER_MARKS,
    START,
    ChannelSplitter,
    header_format,
    mark_begun,
)

#: Marks around a thinking block at the beginning of a reply.
BLOCKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<mm:think>", "</mm:think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("◁think▷", "◁/think▷"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)
#: Where a reply is made of named sections.
SECTIONS = ("<|open|>think<|sep|>", "<|close|>think<|sep|>")
#: Where every part of a reply is a message of its own.
PARTS = ("<|think|>", f"{PART_END}<|begin|>assistant")

#: Every mark that may be a single control token: its text has to be written out then.
MARKS = (*(mark for pair in BLOCKS for mark in pair), "<|channel>", *HEADER_MARKS, *SECTION_MARKS)
MARKS += (PARTS[0], "<|begin|>")


class ReasoningSplitter(Protocol):
    """Cuts a stream in two."""

    def feed(self, text: str) -> tuple[str, str]:
        """(answer, reasoning) that are certain by now."""

    def flush(self) -> tuple[str, str]:
        """(answer, reasoning) that were held back; call once at the end."""


def splitter_for(template: str, prompt: str) -> ReasoningSplitter:
    """The splitter that fits the marks in ``template``; ``prompt`` ends where the reply starts."""
    kind = header_format(template)
    if kind is not None:
        return ChannelSplitter(kind, in_header=prompt.endswith(CHANNEL))
    tail = prompt.rstrip()
    wrapping = wrapping_in(template)
    if wrapping.opening and tail.endswith(wrapping.opening):
        return NoSplitter(wrapping)  # thinking was switched off
    for pair in (*BLOCKS, SECTIONS):
        if tail.endswith(pair[0]):
            return BlockSplitter((pair,), inside=True, wrapping=wrapping)
    return BlockSplitter(_blocks_of(template), wrapping=wrapping)


def _blocks_of(template: str) -> tuple[tuple[str, str], ...]:
    if PART_THOUGHT in template:
        return (PARTS,)
    if has_sections(template):
        return (SECTIONS,)
    return tuple(pair for pair in BLOCKS if pair[1] in template) or BLOCKS[:1]


def begun_reply(
    template: str, prompt: str, reasoning: str, text: str
) -> tuple[str, ReasoningSplitter]:
    """A reply as far as it got, as the model wrote it, and the splitter for what follows.

    To be put behind ``prompt``, which ends where the reply starts.
    """
    kind = header_format(template)
    if kind is not None:
        thought = f"{kind.opening(kind.thought)}{reasoning}" if reasoning else ""
        if not text:
            return _without_overlap(prompt, thought), ChannelSplitter(kind, in_body=kind.thought)
        start = f"{kind.closing}{START}" if thought else ""
        said = f"{thought}{start}{kind.opening(kind.answer)}{text}"
        return _without_overlap(prompt, said), ChannelSplitter(kind, in_body=kind.answer)
    tail = prompt.rstrip()
    wrapping = wrapping_in(template)
    if wrapping.opening and tail.endswith(wrapping.opening):
        return text, NoSplitter(wrapping)
    opened = next((pair for pair in (*BLOCKS, SECTIONS) if tail.endswith(pair[0])), None)
    pair = opened or _blocks_of(template)[0]
    # Marks that are tokens of their own stand close to the text.
    line = "" if pair[0].startswith("<|") else "\n"
    before = "" if opened else f"{pair[0]}{line}"
    if not text:
        return before + reasoning, BlockSplitter(
            (pair,), inside=True, fresh=False, wrapping=wrapping
        )
    if not reasoning and not opened:
        return text, NoSplitter()
    if pair == PARTS:
        said = f"{pair[0]}{reasoning}{pair[1]}<|content|>{text}"
    else:
        said = f"{before}{reasoning}{line}{pair[1]}{line * 2}{wrapping.opening}{text}"
    return said, NoSplitter(wrapping)


def _without_overlap(prompt: str, said: str) -> str:
    # Some templates write the first mark of the reply themselves.
    return said[len(CHANNEL) :] if prompt.endswith(CHANNEL) else said


class NoSplitter:
    """All is answer: for text that is continued without a template."""

    def __init__(self, wrapping: Wrapping = BARE) -> None:
        self._unwrapper = AnswerUnwrapper(wrapping, opened=True)

    def feed(self, text: str) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        return self._unwrapper.feed(text), ""

    def flush(self) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        return self._unwrapper.flush(), ""


class BlockSplitter:
    """One thinking block at the beginning of the reply; later marks are plain text.

    An answer that merely talks about ``<think>`` is thus left alone.
    """

    def __init__(
        self,
        blocks: tuple[tuple[str, str], ...],
        inside: bool = False,
        fresh: bool = True,
        wrapping: Wrapping = BARE,
    ) -> None:
        self._blocks = blocks
        self._closing = blocks[0][1] if inside else ""
        self._state = "inside" if inside else "before"
        self._unwrapper = AnswerUnwrapper(wrapping)
        self._fresh = fresh  # white space between a mark and its text is not shown
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        if self._state == "answer" and not self._fresh:
            return self._unwrapper.feed(text), ""
        self._held += text
        reasoning = ""
        if self._state == "before":
            self._look_for_opening()
        if self._state == "inside":
            reasoning = self._take_inside()
        return (self._take_answer() if self._state == "answer" else ""), reasoning

    def flush(self) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        rest, self._held = self._held, ""
        if self._state == "inside":
            return "", rest.rstrip()
        answer = self._unwrapper.feed(rest if self._state == "before" else "")
        return answer + self._unwrapper.flush(), ""

    def _look_for_opening(self) -> None:
        start = self._held.lstrip()
        for opening, closing in self._blocks:
            if start.startswith(opening):
                self._state, self._closing = "inside", closing
                self._held = start[len(opening) :]
                return
        if not any(opening.startswith(start) for opening, _ in self._blocks):
            self._state, self._fresh = "answer", False

    def _take_inside(self) -> str:
        if self._fresh:
            self._held = self._held.lstrip()
            self._fresh = not self._held
        thought, mark, rest = self._held.partition(self._closing)
        if mark:
            self._state, self._fresh, self._held = "answer", True, rest
            return thought.rstrip()
        # White space before a closing mark belongs to neither side.
        certain = thought[: len(thought) - mark_begun(thought, (self._closing,))].rstrip()
        self._held = thought[len(certain) :]
        return certain

    def _take_answer(self) -> str:
        if self._fresh:
            self._held = self._held.lstrip()
            self._fresh = not self._held
        answer, self._held = self._held, ""
        return self._unwrapper.feed(answer)
