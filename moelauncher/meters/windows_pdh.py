"""Any GPU on Windows, from the performance counters that the Task Manager shows.

``Dedicated Usage`` is VRAM in use, ``Shared Usage`` what spilled over into main memory:
a driver does that silently, and speed collapses. Counters name adapters by LUID; names
and sizes come from DXGI. Both are behind the small :class:`GpuCounters` seam, so this
module is tested on every system. One thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Protocol

from moelauncher.core.machine import GpuHolder, GpuReading
from moelauncher.meters.ram import process_name
from moelauncher.meters.windows_counters import Adapter, WindowsCounters

DEDICATED = r"\GPU Adapter Memory(*)\Dedicated Usage"
SHARED = r"\GPU Adapter Memory(*)\Shared Usage"
PROCESS_DEDICATED = r"\GPU Process Memory(*)\Dedicated Usage"

#: "luid_0x00000000_0x0000C8E1_phys_0", and "pid_1234_luid_..." for one process's part.
_INSTANCE = re.compile(r"(?:pid_(\d+)_)?luid_0x([0-9a-f]+)_0x([0-9a-f]+)_phys_\d+", re.IGNORECASE)


class GpuCounters(Protocol):
    """What is asked of Windows."""

    def adapters(self) -> list[Adapter]:
        """Hardware adapters, software ones left out."""

    def collect(self) -> Mapping[str, Mapping[str, int]]:
        """Counter path to instance name to bytes, all of one moment."""

    def close(self) -> None:
        """Give the query back."""


class WindowsPdhMeter:
    """One reading for each hardware adapter."""

    name = "PDH"

    def __init__(
        self,
        open_counters: Callable[[], GpuCounters] | None = None,
        name_of_process: Callable[[int], str] = process_name,
    ) -> None:
        self._open_counters = open_counters or _open_windows
        self._name_of_process = name_of_process
        self._counters: GpuCounters | None = None
        self._adapters: list[Adapter] = []

    def read(self) -> list[GpuReading]:
        """All adapters. Raises OSError where Windows refuses the counters."""
        if self._counters is None:
            self._counters = self._open_counters()
            self._adapters = self._counters.adapters()
        values = self._counters.collect()
        dedicated = _by_luid(values.get(DEDICATED, {}))
        shared = _by_luid(values.get(SHARED, {}))
        held = _by_luid_and_pid(values.get(PROCESS_DEDICATED, {}))
        return [
            self._reading(adapter, dedicated, shared, held.get(adapter.luid, {}))
            for adapter in self._adapters
        ]

    def close(self) -> None:
        """Close the query, if it was opened."""
        counters, self._counters = self._counters, None
        if counters is not None:
            counters.close()

    def _reading(
        self,
        adapter: Adapter,
        dedicated: Mapping[int, int],
        shared: Mapping[int, int],
        held: dict[int, int],
    ) -> GpuReading:
        used = dedicated.get(adapter.luid)
        own = held.pop(os.getpid(), None)
        largest = sorted(held.items(), key=lambda item: (-item[1], item[0]))
        return GpuReading(
            name=adapter.name,
            source=self.name,
            total_bytes=adapter.dedicated_bytes,
            used_bytes=used,
            free_bytes=None if used is None else max(0, adapter.dedicated_bytes - used),
            shared_bytes=shared.get(adapter.luid),
            holders=tuple(
                GpuHolder(pid, self._name_of_process(pid), n_bytes)
                for pid, n_bytes in largest
                if n_bytes > 0
            ),
            own_bytes=own,
        )


def _by_luid(instances: Mapping[str, int]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for name, n_bytes in instances.items():
        match = _INSTANCE.match(name)
        if match is not None:
            luid = int(match[2], 16) << 32 | int(match[3], 16)
            sums[luid] = sums.get(luid, 0) + n_bytes
    return sums


def _by_luid_and_pid(instances: Mapping[str, int]) -> dict[int, dict[int, int]]:
    held: dict[int, dict[int, int]] = {}
    for name, n_bytes in instances.items():
        match = _INSTANCE.match(name)
        if match is not None and match[1] is not None:
            luid = int(match[2], 16) << 32 | int(match[3], 16)
            pid = int(match[1])
            of_adapter = held.setdefault(luid, {})
            of_adapter[pid] = of_adapter.get(pid, 0) + n_bytes
    return held


def _open_windows() -> GpuCounters:
    return WindowsCounters((DEDICATED, SHARED, PROCESS_DEDICATED))
