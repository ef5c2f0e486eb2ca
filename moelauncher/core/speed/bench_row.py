"""What a benchmark of one placement found: every repeat, its middle and its spread.

In: tokens per second of each repeat. Out: :class:`BenchRow`, as ``bench --json`` prints it.
Pure; any thread.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from moelauncher.core.translate import tr

#: Repeats that spread wider than this share of their median are remarked upon.
NOISY = 0.05


@dataclass(frozen=True)
class BenchRow:
    """One test under one placement. Rates are tokens per second; bytes unknown are None."""

    cpu_moe: int
    test: str  # "pp" (prompt) or "tg" (generation)
    n_tokens: int
    depth: int  # tokens in the context before
    repeats: tuple[float, ...]
    vram_bytes: int | None
    ram_bytes: int | None
    notes: tuple[str, ...] = ()
    #: Places in ``repeats`` that were disturbed: shown, and left out of the median.
    left_out: tuple[int, ...] = ()
    #: Layers that lay in main memory whole, attention and all; no key of the JSON.
    ram_layers: int = 0

    @property
    def counted(self) -> tuple[float, ...]:
        """The undisturbed repeats; all where there is none."""
        kept = tuple(rate for n, rate in enumerate(self.repeats) if n not in self.left_out)
        return kept or self.repeats

    @property
    def median(self) -> float:
        """The middle of the counted repeats."""
        return statistics.median(self.counted)

    @property
    def mad(self) -> float:
        """Median absolute deviation from the median: half of the repeats lie that close."""
        return statistics.median(abs(rate - self.median) for rate in self.counted)

    def to_json(self) -> dict[str, Any]:
        """The row as the command line prints it."""
        values = asdict(self)
        left_out = values.pop("left_out")
        del values["ram_layers"]
        tail = {name: values.pop(name) for name in ("vram_bytes", "ram_bytes", "notes")}
        if left_out:
            tail["left_out"] = left_out
        return values | {"median": self.median, "mad": self.mad} | tail


def spread_note(repeats: tuple[float, ...]) -> str:
    """A sentence where the repeats lie far apart; else ""."""
    middle = statistics.median(repeats)
    spread = (max(repeats) - min(repeats)) / middle
    if spread <= NOISY:
        return ""
    return tr("The repeats differ by {percent:.0f} %.").format(percent=100 * spread)
