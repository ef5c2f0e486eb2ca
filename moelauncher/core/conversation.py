"""A conversation as frozen values: turns in, chat messages for the engine out.

Every function answers a new :class:`Conversation`; nothing is changed in place, so the
window can keep an old one and go back to it. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from moelauncher.core.engine_protocol import ChatMessage, GenerationStats
from moelauncher.core.errors import LauncherError


class TurnState(Enum):
    """Where a turn stands. A user's turn is always ``DONE``."""

    STREAMING = "streaming"
    DONE = "done"
    FAILED = "failed"


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


@dataclass(frozen=True)
class Conversation:
    """The turns so far, oldest first, and the system prompt (empty: none)."""

    turns: tuple[Turn, ...] = ()
    system: str = ""

    @property
    def streaming(self) -> bool:
        """Whether the last turn is a reply that is still being written."""
        return bool(self.turns) and self.turns[-1].state is TurnState.STREAMING

    @property
    def last_reply(self) -> Turn | None:
        """The newest reply, finished or not; None before the first."""
        return next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)

    def ask(self, text: str) -> Conversation:
        """Add the user's turn. Raises ValueError for blank text or while a reply streams."""
        if not text.strip():
            raise ValueError("a user's turn has text")
        if self.streaming:
            raise ValueError("a reply is still being written")
        return self._with(Turn("user", text))

    def begin_reply(self, label: str = "") -> Conversation:
        """Add an empty reply, to be filled by :meth:`append`. ``label``: who answers."""
        if self.streaming:
            raise ValueError("a reply is still being written")
        return self._with(Turn("assistant", "", label=label, state=TurnState.STREAMING))

    def append(self, text: str, reasoning: str = "") -> Conversation:
        """Add to the reply that is being written."""
        reply = self._open_reply()
        return self._replace_last(
            replace(reply, text=reply.text + text, reasoning=reply.reasoning + reasoning)
        )

    def finish(self, stats: GenerationStats, placement_text: str = "") -> Conversation:
        """Close the reply that is being written; a stopped one keeps what it has."""
        return self._replace_last(
            replace(
                self._open_reply(),
                state=TurnState.DONE,
                stats=stats,
                placement_text=placement_text,
            )
        )

    def fail(self, error: LauncherError) -> Conversation:
        """Close the reply with the reason why it could not go on; its text is kept."""
        return self._replace_last(replace(self._open_reply(), state=TurnState.FAILED, error=error))

    def messages(self) -> tuple[ChatMessage, ...]:
        """What the engine is given: the system prompt, then turns that alternate.

        Replies without any text (failed, stopped at once, still to come) are left out. The
        user's turns that then stand side by side are joined by a blank line, since many
        templates refuse two in a row; so nothing that was asked gets lost. Reasoning is
        handed on apart from the answer: whether it is seen again is the template's choice.
        """
        messages = [ChatMessage("system", self.system)] if self.system.strip() else []
        for turn in self.turns:
            if turn.role == "assistant" and not turn.text.strip():
                continue
            if turn.role == "user" and messages and messages[-1].role == "user":
                joined = f"{messages[-1].content}\n\n{turn.text}"
                messages[-1] = ChatMessage("user", joined)
                continue
            messages.append(ChatMessage(turn.role, turn.text, turn.reasoning))
        return tuple(messages)

    def _open_reply(self) -> Turn:
        if not self.streaming:
            raise ValueError("no reply is being written")
        return self.turns[-1]

    def _with(self, turn: Turn) -> Conversation:
        return replace(self, turns=(*self.turns, turn))

    def _replace_last(self, turn: Turn) -> Conversation:
        return replace(self, turns=(*self.turns[:-1], turn))
