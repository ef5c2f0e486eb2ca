"""Marks that some models put around their answer once they have thought.

In: the chat template, then the answer as it streams in. Out: the answer without these marks.
Pure; one unwrapper a reply, one thread.
"""

from __future__ import annotations

#: An opening mark (empty: the answer has only an end) and a closing one.
WRAPPINGS = (("<response>", "</response>"), ("<answer>", "</answer>"))
#: Ends a part of a reply where the template opens the thinking with ``PART_THOUGHT``.
PART_END = "<|end|>"
PART_THOUGHT = "<|begin|>assistant<|think|>"


def wrapping_in(template: str) -> tuple[str, str]:
    """The marks that ``template`` names around an answer; both empty where there are none."""
    if PART_THOUGHT in template:
        return "", PART_END
    pairs = (pair for pair in WRAPPINGS if pair[0] in template and pair[1] in template)
    return next(pairs, ("", ""))


class AnswerUnwrapper:
    """Takes the marks off: the opening at the very beginning, the closing at the very end.

    A mark that stands anywhere else is text. ``opened``: the opening mark was read before.
    """

    def __init__(self, wrapping: tuple[str, str], opened: bool = False) -> None:
        self._opening, self._closing = wrapping
        self._state = "open" if opened or not self._opening else "before"
        if not self._closing:
            self._state = "bare"
        self._held = ""

    def feed(self, text: str) -> str:
        """The text of the answer that is certain by now."""
        if self._state == "bare":
            return text
        self._held += text
        if self._state == "before":
            start = self._held.lstrip()
            if self._opening.startswith(start) and start != self._opening:
                return ""
            if start.startswith(self._opening):
                self._state, self._held = "fresh", start[len(self._opening) :]
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
        # White space, the closing mark or its beginning, white space: these wait for the end.
        kept = self._held.rstrip()
        for length in range(min(len(kept), len(self._closing)), 0, -1):
            if self._closing.startswith(kept[-length:]):
                kept = kept[:-length]
                break
        kept = kept.rstrip()
        self._held = self._held[len(kept) :]
        return kept
