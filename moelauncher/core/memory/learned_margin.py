"""What past loads of a device teach: the driver's real share, and a safer margin.

In: :class:`LoadRecord` values. Out: :class:`Learned`. Pure; any thread.

The driver's share of a fresh process is the middle of what was measured beside llama.cpp's
buffers. The margin only ever grows above the usual one: by how much further a load went
than that middle, by what was missing where a load failed though it was said to fit, and by
what spilled into shared memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from moelauncher.core.memory.load_records import LOADED, OUT_OF_MEMORY, SPILLED, LoadRecord
from moelauncher.core.units import MIB

#: So many of the newest records of a device count.
_NEWEST = 20
#: Nobody is kept from using a card by one strange load.
_MOST_EXTRA_BYTES = 1024 * MIB
#: A driver takes no more than this for a process; more was another program.
_MOST_DRIVER_BYTES = 2048 * MIB
#: Where a load failed that was said to fit, the next one leaves so much more.
_STEP_BYTES = 64 * MIB
_ROUND_BYTES = 16 * MIB


@dataclass(frozen=True)
class Learned:
    """``driver_bytes`` None: never measured. ``extra_bytes`` goes on top of the usual margin."""

    driver_bytes: int | None = None
    extra_bytes: int = 0


def learned(records: Sequence[LoadRecord], device: str) -> Learned:
    """What the records say of one device (a ``device_key``)."""
    here = [record for record in records if record.device == device][-_NEWEST:]
    fresh = _beside_buffers(here, had_context=False)
    again = _beside_buffers(here, had_context=True)
    driver = round(statistics.median(fresh)) if fresh else None
    extra = max(again, default=0)
    if driver is not None:
        extra = max(extra, max(fresh) - driver)
    for record in here:
        extra = max(extra, _missing(record))
    return Learned(driver, min(_rounded_up(extra), _MOST_EXTRA_BYTES))


def _beside_buffers(records: Sequence[LoadRecord], *, had_context: bool) -> list[int]:
    """What each load took beside its buffers, where that could be measured and is credible."""
    found = []
    for record in records:
        if record.outcome != LOADED or record.had_context is not had_context:
            continue
        if record.measured_bytes is None or record.buffer_bytes is None:
            continue
        beside = record.measured_bytes - record.buffer_bytes
        if 0 <= beside <= _MOST_DRIVER_BYTES:
            found.append(beside)
    return found


def _missing(record: LoadRecord) -> int:
    """By how much the margin of this load was too small."""
    if record.outcome == SPILLED:
        return record.spilled_bytes or 0
    if record.outcome == OUT_OF_MEMORY and record.spare_bytes is not None:
        # A load that was said not to fit, and was tried all the same, teaches nothing.
        return record.spare_bytes + _STEP_BYTES if record.spare_bytes >= 0 else 0
    return 0


def _rounded_up(n_bytes: int) -> int:
    # A few MiB of difference are noise, and must not change the margin at every load.
    if n_bytes < _ROUND_BYTES:
        return 0
    return -(-n_bytes // _ROUND_BYTES) * _ROUND_BYTES
