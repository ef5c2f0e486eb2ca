"""Profiles: what a user leaves free of each GPU, by the use of the machine.

In: what the window remembered (JSON values), the GPUs. Out: :class:`Profiles`, and the margins of
the chosen one. Pure; one thread. Two are there from the start, beside the usual one: "gaming"
leaves a third of each GPU (at least 2 GiB, at most 6), "all mine" leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from moelauncher.core.memory.margins import margins_from
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.units import GIB

USUAL, GAMING, ALL_MINE = "usual", "gaming", "all mine"
BUILT_IN = (USUAL, GAMING, ALL_MINE)
_MOST_PROFILES = 24
_GAME_LEAST_BYTES, _GAME_MOST_BYTES = 2 * GIB, 6 * GIB


@dataclass(frozen=True)
class Profiles:
    """``margins``: bytes to leave free by device name, by profile; only what a user changed."""

    chosen: str = USUAL
    margins: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All profiles, the built-in ones first."""
        return (*BUILT_IN, *sorted(name for name in self.margins if name not in BUILT_IN))

    def leave_free(self, gpus: Iterable[PlacementDevice]) -> dict[str, int]:
        """The chosen profile's margins; a device that is missing gets the usual one."""
        found: dict[str, int] = {}
        for gpu in gpus:
            if self.chosen == ALL_MINE:
                found[gpu.name] = 0
            elif self.chosen == GAMING:
                third = (gpu.total_bytes or gpu.free_bytes or 0) // 3
                found[gpu.name] = min(max(third, _GAME_LEAST_BYTES), _GAME_MOST_BYTES)
        return {**found, **self.margins.get(self.chosen, {})}

    def choose(self, name: str) -> Profiles:
        """The same with another one chosen; an unknown name changes nothing."""
        return replace(self, chosen=name) if name in self.names else self

    def change(self, device: str, n_bytes: int) -> Profiles:
        """The same with another margin in the chosen profile."""
        margins = {**self.margins.get(self.chosen, {}), device: n_bytes}
        return replace(self, margins={**self.margins, self.chosen: margins})

    def save_as(self, name: str, leave_free: Mapping[str, int]) -> Profiles:
        """A new profile with these margins, chosen; "" where the name is none, nothing happens."""
        name = display_name(name)[:40]
        if not name or len(self.margins) >= _MOST_PROFILES:
            return self
        return Profiles(name, {**self.margins, name: dict(leave_free)})

    def delete(self, name: str) -> Profiles:
        """Without ``name``; a built-in one only forgets what was changed."""
        margins = {key: value for key, value in self.margins.items() if key != name}
        gone = self.chosen == name and name not in BUILT_IN
        return Profiles(USUAL if gone else self.chosen, margins)

    def to_stored(self) -> dict[str, object]:
        """What JSON can hold."""
        stored = {name: dict(values) for name, values in self.margins.items()}
        return {"chosen": self.chosen, "margins": stored}


def profiles_from(stored: object, older_margins: object = None) -> Profiles:
    """What was stored, as far as it makes sense; ``older_margins``: from before there were any."""
    margins: dict[str, Mapping[str, int]] = {}
    chosen: object = USUAL
    if isinstance(stored, dict):
        chosen = stored.get("chosen")
        found = stored.get("margins")
        for name, values in found.items() if isinstance(found, dict) else ():
            if isinstance(name, str) and name:
                margins[name] = margins_from(values)
    elif margins_from(older_margins):
        margins[USUAL] = margins_from(older_margins)
    known = Profiles(USUAL, margins)
    return known.choose(chosen) if isinstance(chosen, str) else known
