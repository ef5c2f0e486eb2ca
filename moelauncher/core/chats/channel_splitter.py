"""Replies that are several messages, each with a header that says for whom it is.

gpt-oss names a channel in it, Muse Glimmer a recipient; what is meant for the model itself is
thinking. In: text as it comes. Out: pairs of (answer, reasoning). Pure; one splitter a reply,
one thread.
"""

from __future__ import annotations

from dataclasses import dataclass

CHANNEL = "<|channel|>"
MESSAGE = "<|message|>"
START = "<|start|>assistant"
#: Role, channel, recipient and kind of content together are shorter.
LONGEST_HEADER = 120


@dataclass(frozen=True)
class HeaderFormat:
    """A header is ``START``, ``before`` and whom it is for; ``MESSAGE`` ends it.

    ``thought`` and ``answer`` are what stands there; ``closing`` ends a thought. ``at_once``:
    the prompt ends with START, so that a reply begins in its header.
    """

    before: str
    thought: str
    answer: str
    closing: str
    body_ends: tuple[str, ...]
    at_once: bool

    def opening(self, whom: str) -> str:
        """What stands between START and a message for ``whom``."""
        return f"{self.before}{whom}{MESSAGE}"


HARMONY = HeaderFormat(
    CHANNEL,
    "analysis",
    "final",
    "<|end|>",
    ("<|end|>", "<|start|>", "<|return|>", "<|call|>", CHANNEL),
    at_once=False,
)
RECIPIENTS = HeaderFormat(
    " to=", "self", "user", "<|eom|>", ("<|eom|>", "<|eot|>", "<|start|>"), at_once=True
)

#: Every mark of theirs.
HEADER_MARKS = (MESSAGE, *HARMONY.body_ends, *RECIPIENTS.body_ends)


def header_format(template: str) -> HeaderFormat | None:
    """The format that ``template`` speaks; None: replies are one message."""
    if MESSAGE not in template:
        return None
    if CHANNEL in template:
        return HARMONY
    return RECIPIENTS if f"{RECIPIENTS.before}{RECIPIENTS.thought}" in template else None


class ChannelSplitter:
    """``<|channel|>analysis<|message|>...<|end|>`` and the like."""

    def __init__(self, kind: HeaderFormat, in_header: bool = False, in_body: str = "") -> None:
        self._kind = kind
        self._held = ""
        self._header = in_header or (kind.at_once and not in_body)
        self._reasoning = in_body == kind.thought

    def feed(self, text: str) -> tuple[str, str]:
        """See :class:`~moelauncher.core.chats.reasoning.ReasoningSplitter`."""
        self._held += text
        answer: list[str] = []
        reasoning: list[str] = []
        while self._held:
            if self._header:
                header, mark, rest = self._held.partition(MESSAGE)
                if mark:
                    whom = header.rpartition(self._kind.before)[2].strip()
                    self._reasoning = whom.startswith(self._kind.thought)
                    self._header, self._held = False, rest
                    continue
                if self._may_be_header(header):
                    break
                self._header = False  # the model speaks without one
            at, mark = first_mark(self._held, self._kind.body_ends)
            held_back = 0 if mark else mark_begun(self._held, self._kind.body_ends)
            body = self._held[: at if mark else len(self._held) - held_back]
            (reasoning if self._reasoning else answer).append(body)
            self._held = self._held[len(body) + len(mark) :]
            self._header = bool(mark)
            if not mark:
                break
        return "".join(answer), "".join(reasoning)

    def _may_be_header(self, begun: str) -> bool:
        if not self._kind.at_once:
            return True
        return any(
            start.startswith(begun) or begun.startswith(start)
            for start in (self._kind.before, START, *self._kind.body_ends)
        )

    def flush(self) -> tuple[str, str]:
        """See :class:`~moelauncher.core.chats.reasoning.ReasoningSplitter`."""
        rest, self._held = self._held, ""
        if self._header:
            # An unfinished header is no text; what is longer was never meant as one.
            rest = rest.removeprefix(START).strip()
            return (rest if len(rest) > LONGEST_HEADER else ""), ""
        return ("", rest) if self._reasoning else (rest, "")


def first_mark(text: str, marks: tuple[str, ...]) -> tuple[int, str]:
    """Where the first of ``marks`` stands in ``text``, and which; (-1, "") without one."""
    found = [(at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    return min(found) if found else (-1, "")


def mark_begun(text: str, marks: tuple[str, ...]) -> int:
    """Length of the longest end of ``text`` that may become one of ``marks``."""
    longest = max(len(mark) for mark in marks) - 1
    for length in range(min(len(text), longest), 0, -1):
        end = text[-length:]
        if any(len(mark) > length and mark.startswith(end) for mark in marks):
            return length
    return 0
