"""How fast each device of this machine streams weights: measured once, kept, read again.

In: bytes a second of a device, measured by :mod:`moelauncher.engine.bandwidth_probe`. Out:
:class:`Bandwidths` of a machine, from and to one small file. One writer at a time.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.files.ggml_types import GGML_TYPES
from moelauncher.core.memory.placement import RAM

#: Measures named devices (RAM among them), until "was it cancelled?": name to bytes a second.
#: Blocks about a second a device; not for the window's thread. A device that cannot be
#: measured is missing. Raises Cancelled.
BandwidthProbe = Callable[[Sequence[str], Callable[[], bool]], Mapping[str, float]]

_MOST_MACHINES = 16


@dataclass(frozen=True)
class Bandwidths:
    """Bytes a second by device name, ``RAM`` for RAM; what is not there is unknown."""

    bytes_s: Mapping[str, float] = field(default_factory=dict)
    measured_s: float | None = None  # since 1970

    @property
    def ram_bytes_s(self) -> float | None:
        """Of main memory, read by all cores that a model would use."""
        return self.bytes_s.get(RAM)


class BandwidthFile:
    """What was measured of each machine (by its name and build). Damaged: as if empty."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, machine: str) -> Bandwidths:
        """What is known of ``machine``."""
        found = self._machines().get(machine)
        values = found.get("bytes_s") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(values, dict):
            return Bandwidths()
        known = {
            name: float(value)
            for name, value in values.items()
            if type(value) in (int, float) and 1e6 < value < 1e15
        }
        when = found.get("measured_s")
        return Bandwidths(known, float(when) if isinstance(when, int | float) else None)

    def write(self, machine: str, bytes_s: Mapping[str, float]) -> Bandwidths:
        """Keep what was measured now, beside what is known of other devices and machines.

        Raises LauncherError where the file cannot be written.
        """
        machines = self._machines()
        kept = {**self.read(machine).bytes_s, **bytes_s}
        now = Bandwidths(kept, time.time())
        machines.pop(machine, None)
        machines[machine] = {
            "bytes_s": {name: round(value) for name, value in kept.items()},
            "measured_s": now.measured_s,
        }
        newest = dict(list(machines.items())[-_MOST_MACHINES:])
        write_text_atomically(self._path, json.dumps(newest, indent=1) + "\n")
        return now

    def _machines(self) -> dict[str, object]:
        with contextlib.suppress(OSError, ValueError, RecursionError):
            found = json.loads(self._path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        return {}


#: What is read while measuring: dense enough that memory and not the processor is the limit.
PROBE_TYPE = next(number for number, kind in GGML_TYPES.items() if kind.name == "Q8_0")
