"""Where the session stands, as it is handed to desks: they move it, and know no session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moelauncher.core.session_state import SessionEvent, SessionState


@dataclass(frozen=True)
class Standing:
    """``state`` says where the session stands, ``move`` moves it, ``show`` repaints it."""

    state: Callable[[], SessionState]
    move: Callable[[SessionEvent], None]
    show: Callable[[], None]
