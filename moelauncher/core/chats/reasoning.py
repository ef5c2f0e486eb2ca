"""Keeps a model's thinking apart from its answer while both stream in.

In: the chat template (to know how this model marks its thinking), the rendered prompt
(which may have opened the block already), then text as it comes. Out: pairs of (answer,
reasoning). Pure; one splitter a reply, one thread.
"""

from __future__ import annotations

from typing import Protocol

from moelauncher.core.chats.answer_wrapping import (
    PART_END,
    PART_THOUGHT,
    AnswerUnwrapper,
    wrapping_in,
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
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)
#: Where every part of a reply is a message of its own.
PARTS = ("<|think|>", f"{PART_END}<|begin|>assistant")

#: Marks of the channel format (gpt-oss): a header, then a body up to the next mark.
CHANNEL = "<|channel|>"
MESSAGE = "<|message|>"
#: Role, channel, recipient and kind of content together are shorter.
LONGEST_HEADER = 120
_BODY_ENDS = ("<|end|>", "<|start|>", "<|return|>", "<|call|>", CHANNEL)

#: Every mark that may be a single control token: its text has to be written out then.
MARKS = (*(mark for pair in BLOCKS for mark in pair), "<|channel>", MESSAGE, *_BODY_ENDS)
MARKS += (PARTS[0], "<|begin|>")


class ReasoningSplitter(Protocol):
    """Cuts a stream in two."""

    def feed(self, text: str) -> tuple[str, str]:
        """(answer, reasoning) that are certain by now."""

    def flush(self) -> tuple[str, str]:
        """(answer, reasoning) that were held back; call once at the end."""


def splitter_for(template: str, prompt: str) -> ReasoningSplitter:
    """The splitter that fits the marks in ``template``; ``prompt`` ends where the reply starts."""
    if CHANNEL in template and MESSAGE in template:
        return ChannelSplitter(in_header=prompt.endswith(CHANNEL))
    tail = prompt.rstrip()
    wrapping = wrapping_in(template)
    for opening, closing in BLOCKS:
        if tail.endswith(opening):
            return BlockSplitter(((opening, closing),), inside=True, wrapping=wrapping)
    return BlockSplitter(_blocks_of(template), wrapping=wrapping)


def _blocks_of(template: str) -> tuple[tuple[str, str], ...]:
    if PART_THOUGHT in template:
        return (PARTS,)
    return tuple(pair for pair in BLOCKS if pair[1] in template) or BLOCKS[:1]


def begun_reply(
    template: str, prompt: str, reasoning: str, text: str
) -> tuple[str, ReasoningSplitter]:
    """A reply as far as it got, as the model wrote it, and the splitter for what follows.

    To be put behind ``prompt``, which ends where the reply starts.
    """
    if CHANNEL in template and MESSAGE in template:
        thought = f"{CHANNEL}analysis{MESSAGE}{reasoning}" if reasoning else ""
        if not text:
            return _without_overlap(prompt, thought), ChannelSplitter(in_body="analysis")
        start = "<|end|><|start|>assistant" if thought else ""
        said = f"{thought}{start}{CHANNEL}final{MESSAGE}{text}"
        return _without_overlap(prompt, said), ChannelSplitter(in_body="final")
    tail = prompt.rstrip()
    opened = next((pair for pair in BLOCKS if tail.endswith(pair[0])), None)
    pair = opened or _blocks_of(template)[0]
    wrapping = wrapping_in(template)
    before = "" if opened else f"{pair[0]}\n"
    if not text:
        return before + reasoning, BlockSplitter(
            (pair,), inside=True, fresh=False, wrapping=wrapping
        )
    if not reasoning and not opened:
        return text, NoSplitter()
    if pair == PARTS:
        said = f"{pair[0]}{reasoning}{pair[1]}<|content|>{text}"
    else:
        said = f"{before}{reasoning}\n{pair[1]}\n\n{wrapping[0]}{text}"
    return said, NoSplitter(wrapping)


def _without_overlap(prompt: str, said: str) -> str:
    # Some templates write the first mark of the reply themselves.
    return said[len(CHANNEL) :] if prompt.endswith(CHANNEL) else said


class NoSplitter:
    """All is answer: for text that is continued without a template."""

    def __init__(self, wrapping: tuple[str, str] = ("", "")) -> None:
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
        wrapping: tuple[str, str] = ("", ""),
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
        certain = thought[: len(thought) - _mark_begun(thought, (self._closing,))].rstrip()
        self._held = thought[len(certain) :]
        return certain

    def _take_answer(self) -> str:
        if self._fresh:
            self._held = self._held.lstrip()
            self._fresh = not self._held
        answer, self._held = self._held, ""
        return self._unwrapper.feed(answer)


class ChannelSplitter:
    """``<|channel|>analysis<|message|>...<|end|>``: only the channel "analysis" is thinking."""

    def __init__(self, in_header: bool = False, in_body: str = "") -> None:
        self._held = ""
        self._header = in_header
        self._reasoning = in_body == "analysis"

    def feed(self, text: str) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        self._held += text
        answer: list[str] = []
        reasoning: list[str] = []
        while self._held:
            if self._header:
                header, mark, rest = self._held.partition(MESSAGE)
                if not mark:
                    break
                channel = header.rpartition(CHANNEL)[2].strip()
                self._reasoning = channel.startswith("analysis")
                self._header, self._held = False, rest
                continue
            at, mark = _first_mark(self._held, _BODY_ENDS)
            held_back = 0 if mark else _mark_begun(self._held, _BODY_ENDS)
            body = self._held[: at if mark else len(self._held) - held_back]
            (reasoning if self._reasoning else answer).append(body)
            self._held = self._held[len(body) + len(mark) :]
            self._header = bool(mark)
            if not mark:
                break
        return "".join(answer), "".join(reasoning)

    def flush(self) -> tuple[str, str]:
        """See :class:`ReasoningSplitter`."""
        rest, self._held = self._held, ""
        if self._header:
            # An unfinished header is no text; what is longer was never meant as one.
            rest = rest.removeprefix("<|start|>assistant").strip()
            return (rest if len(rest) > LONGEST_HEADER else ""), ""
        return ("", rest) if self._reasoning else (rest, "")


def _first_mark(text: str, marks: tuple[str, ...]) -> tuple[int, str]:
    found = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    return min(found) if found else (-1, "")


def _mark_begun(text: str, marks: tuple[str, ...]) -> int:
    """Length of the longest end of ``text`` that may become one of ``marks``."""
    longest = max(len(mark) for mark in marks) - 1
    for length in range(min(len(text), longest), 0, -1):
        end = text[-length:]
        if any(len(mark) > length and mark.startswith(end) for mark in marks):
            return length
    return 0
