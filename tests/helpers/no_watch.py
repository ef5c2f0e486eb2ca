"""A watch over a measured run that sees nothing."""

from __future__ import annotations

from collections.abc import Callable

from moelauncher.core.speed.conditions import Conditions


class NoWatch:
    """A ``ConditionWatch`` that knows nothing: no run is disturbed."""

    def baseline(self) -> Conditions:
        return Conditions()

    def begin(self, pid: int) -> Callable[[], Conditions]:
        return Conditions
