"""One turn of a chat: what was said, by whom, and how it came about.

Pure values; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from moelauncher.core.engine_protocol import GenerationStats, Sampling
from moelauncher.core.errors import LauncherError


class TurnState(Enum):
    """Where a turn stands. A user's turn is always ``DONE``."""

    STREAMING = "streaming"
    DONE = "done"
    FAILED = "failed"
    CUT = "cut"  # the program ended while it was being written


@dataclass(frozen=True)
class Turn:
    """One turn of a chat. ``role`` is "user" or "assistant"."""

    role: str
    text: str
    reasoning: str = ""  # what stood inside the thinking block, apart from the answer
    label: str = ""  # who answered: the model's name
    placement_text: str = ""  # under which placement, as the footer says it
    state: TurnState = TurnState.DONE
    stats: GenerationStats | None = None
    error: LauncherError | None = None
    thought_s: float | None = None  # how long the thinking took
    sampling: Sampling | None = None  # how a reply's tokens were drawn

    @property
    def can_go_on(self) -> bool:
        """Whether a reply ended before the model meant to end it."""
        if self.role != "assistant" or self.state is TurnState.STREAMING:
            return False
        ended = self.stats is not None and self.stats.finish_reason == "stop"
        return not ended and bool(self.text or self.reasoning)
