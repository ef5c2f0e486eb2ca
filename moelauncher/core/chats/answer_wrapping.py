"""Marks that some models put around their answer once they have thought.

In: the chat template, then the answer as it streams in. Out: the answer without these marks.
Pure; one unwrapper a reply, one thread.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wrapping:
    """An opening mark (empty: the answer has only an end) and a closing one.

    ``ends``: the closing is a token of its own, which no text holds: nothing of what follows it
    belongs to the answer. Without ``closing`` nothing is around the answer.
    """

    opening: str = ""
    closing: str = ""
    ends: bool = False


BARE = Wrapping()
WRAPPINGS = (
    Wrapping("<response>", "</response>"),
    Wrapping("<answer>", "</answer>"),
    Wrapping("<|START_TEXT|>", "<|END_TEXT|>", ends=True),
    Wrapping("<|START_RESPONSE|>", "<|END_RESPONSE|>", ends=True),
)
#: Ends a part of a reply where the template opens the thinking with ``PART_THOUGHT``.
PART_END = "<|end|>"
PART_THOUGHT = "<|begin|>assistant<|think|>"
#: Marks of sections by name (Kimi K3), which templates write by a macro.
SECTION_MARKS = ("<|open|>", "<|close|>", "<|sep|>")
SECTION = Wrapping("<|open|>response<|sep|>", "<|close|>response<|sep|>", ends=True)


def wrapping_in(template: str) -> Wrapping:
    """What ``template`` names around an answer."""
    if PART_THOUGHT in template:
        return Wrapping("", PART_END)
    if has_sections(template):
        return SECTION
    pairs = (pair for pair in WRAPPINGS if pair.opening in template and pair.closing in template)
    return next(pairs, BARE)


def has_sections(template: str) -> bool:
    """Whether replies are made of named sections."""
    return all(mark in template for mark in SECTION_MARKS)


class AnswerUnwrapper:
    """Takes the marks off: the opening at the very beginning, the closing at the very end.

    A mark that stands anywhere else is text. ``opened``: the opening mark was read before.
    """

    def __init__(self, wrapping: Wrapping, opened: bool = False) -> None:
        self._opening, self._closing = wrapping.opening, wrapping.closing
        self._ends = wrapping.ends
        self._state = "open" if opened or not self._opening else "before"
        if not self._closing:
            self._state = "bare"
        self._held = ""

    def feed(self, text: str) -> str:
        """The text of the answer that is certain by now."""
        if self._state in ("bare", "over"):
            return text if self._state == "bare" else ""
        self._held += text
        if self._state == "before":
            start = self._held.lstrip()
            if self._opening.startswith(start) and start != self._opening:
                return ""
            if start.startswith(self._opening):
                self._state, self._held = "fresh", start[len(self._opening) :]
            elif self._ends:
                self._state = "open"  # a mark that was no text to begin with
            else:
                self._state = "bare"
                return self._all()
        if self._state == "fresh":
            self._held = self._held.lstrip()
            if not self._held:
                return ""
            self._state = "open"
        return self._certain()

    def flush(self) -> str:
        """What was held back; call once at the end."""
        rest = self._all()
        if self._state == "open" and rest.rstrip().endswith(self._closing):
            return rest.rstrip()[: -len(self._closing)].rstrip()
        return rest

    def _all(self) -> str:
        rest, self._held = self._held, ""
        return rest

    def _certain(self) -> str:
        if self._ends and self._closing in self._held:
            last = self._all().partition(self._closing)[0]
            self._state = "over"
            return last.rstrip()
        # White space, the closing mark or its beginning, white space: these wait for the end.
        kept = self._held.rstrip()
        for length in range(min(len(kept), len(self._closing)), 0, -1):
            if self._closing.startswith(kept[-length:]):
                kept = kept[:-length]
                break
        kept = kept.rstrip()
        self._held = self._held[len(kept) :]
        return kept
