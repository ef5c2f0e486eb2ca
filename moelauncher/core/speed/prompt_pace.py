"""How far a prompt is read, and how long it may still take, also between two pieces.

llama.cpp reads a prompt in pieces of one ubatch and says nothing within one: 512 tokens on a
processor alone may take half a minute. In: the end of each piece, and the clock. Out:
:class:`PromptReading` for any moment. Tokens are only ever counted as read when they were; the
time left runs on by the clock. One thread.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A prompt of fewer tokens tells little of how fast the next one is read.
_LEAST_TOKENS = 64


@dataclass(frozen=True)
class PromptReading:
    """One moment of a prompt's evaluation. Cached tokens count in none of the numbers.

    ``tok_s`` is measured in this prompt, None before its first piece is read. ``left_s`` may
    stand on the last prompt's speed until then, None where nothing is known; never below 0.
    ``waited_s`` is the time since the reading began.
    """

    done: int
    total: int
    tok_s: float | None = None
    left_s: float | None = None
    waited_s: float = 0.0

    @property
    def share(self) -> float | None:
        """0 to 1; None while nothing can be said."""
        return self.done / self.total if self.total > 0 else None


class PromptPace:
    """The pace of the prompt that is read now; knows the last one of the same load."""

    def __init__(self) -> None:
        self._last_tok_s: float | None = None
        self._done = self._total = 0
        self._elapsed_s = 0.0
        self._told_at_s: float | None = None

    def forget(self) -> None:
        """Another model or placement: what is known of the last prompt says nothing of it."""
        self._last_tok_s = None

    def told(self, done: int, total: int, elapsed_s: float, now_s: float) -> None:
        """``done`` of ``total`` tokens to evaluate are read after ``elapsed_s`` of reading."""
        self._done, self._total, self._elapsed_s = done, total, elapsed_s
        self._told_at_s = now_s

    def stop(self) -> None:
        """The prompt is read, or given up."""
        self._told_at_s = None

    def learn(self, n_evaluated: int, tok_s: float | None) -> None:
        """A prompt is done with: ``n_evaluated`` of its tokens were really read."""
        if tok_s is not None and n_evaluated >= _LEAST_TOKENS:
            self._last_tok_s = tok_s

    def reading(self, now_s: float) -> PromptReading | None:
        """How it stands; None where no prompt is being read."""
        if self._told_at_s is None:
            return None
        since_s = max(now_s - self._told_at_s, 0.0)
        tok_s = self._done / self._elapsed_s if self._done and self._elapsed_s > 0 else None
        pace = tok_s or self._last_tok_s
        left_s = None
        if pace is not None:
            left_s = max((self._total - self._done) / pace - since_s, 0.0)
        return PromptReading(
            self._done, self._total, tok_s, left_s, waited_s=self._elapsed_s + since_s
        )
