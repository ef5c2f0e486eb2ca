"""What lets a conversation go on when its model moves: the pause of a reply, the saved state.

Engine thread, but for what is said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes

#: What must stay free in main memory beside a saved conversation.
_SPARE_BYTES = 256 << 20

#: Bytes of main memory that are free now; None where nobody knows.
FreeRam = Callable[[], int | None]


class MovePause(Protocol):
    """What a reply looks at between two tokens."""

    @property
    def wanted(self) -> bool:
        """Whether a move waits. May turn true at any moment."""

    def serve(self) -> Any:
        """Move; returns the model that is loaded now. Raises LauncherError where none is."""


@dataclass(frozen=True)
class SavedChat:
    """Tokens of a context and, where there was room for it, their state."""

    tokens: list[int]
    state: Any | None  # ctypes array of bytes
    reason: str  # why there is no state, as a sentence; else ""


def room_for_state(state_bytes: int, free_ram: FreeRam) -> str:
    """Why a state of that size is not kept in main memory, as a sentence; "" where it is."""
    free_bytes = free_ram()
    if free_bytes is None or state_bytes + _SPARE_BYTES <= free_bytes:
        return ""
    return tr(
        "Its saved state would take {size} of RAM, and {free} is free, so it is read again."
    ).format(size=format_bytes(state_bytes), free=format_bytes(free_bytes))
