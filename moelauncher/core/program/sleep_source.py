"""What tells that the machine goes to sleep: one behind each system, all spoken to alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class SleepSource(Protocol):
    """Made and closed on the window's thread; its calls may come on any."""

    def start(self, on_sleep: Callable[[], None], on_wake: Callable[[], None]) -> bool:
        """Listen from now on; False where this system tells nothing of its sleep.

        After ``on_sleep`` the system waits, for some seconds at most, until :meth:`ready`.
        """

    def ready(self) -> None:
        """What had to be done before the sleep is done."""

    def close(self) -> None:
        """Listen no longer. Safe to call twice."""


class NoSleepSource:
    """For systems that tell nothing."""

    def start(self, on_sleep: Callable[[], None], on_wake: Callable[[], None]) -> bool:
        """Nothing will come."""
        return False

    def ready(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing is open."""
