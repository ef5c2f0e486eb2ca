"""How long moves take: measured from letting go to the next token, and expected beforehand.

In: what the session does and hears. Out: seconds, None where unknown. GUI thread.
"""

from __future__ import annotations

from pathlib import Path


class MoveTiming:
    """Remembers this session's loads of each model."""

    def __init__(self) -> None:
        self._reload_s: dict[Path, float] = {}
        self._context_s: dict[Path, float] = {}
        self._asked_s: float | None = None
        self._waits = False

    def asked(self, time_s: float) -> None:
        """A move was asked for at ``time_s`` (monotonic): the slider's release, or the press."""
        self._asked_s, self._waits = time_s, False

    def loaded(self, path: Path, load_s: float, *, context_only: bool) -> None:
        """A load of that file took ``load_s``."""
        (self._context_s if context_only else self._reload_s)[path] = load_s

    def reply_goes_on(self) -> None:
        """The model is there again and a reply waits for its next token."""
        self._waits = True

    def token(self, time_s: float) -> float | None:
        """A token came; once after each move: seconds since it was asked for."""
        if not self._waits or self._asked_s is None:
            return None
        self._waits = False
        return max(0.0, time_s - self._asked_s)

    def expected_s(self, path: Path, *, context_only: bool) -> float | None:
        """What the next load of that file will take, as the last one did."""
        return (self._context_s if context_only else self._reload_s).get(path)
