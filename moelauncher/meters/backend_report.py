"""What the loaded llama.cpp build says of its own devices: the fallback meter.

It works for every backend, knows no temperature and no other program, and is the only
source that knows llama.cpp's device names. In: a function that asks the engine's
library (given by the app: meters and engine do not know each other).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from moelauncher.core.machine import BackendDevice, GpuReading
from moelauncher.core.memory.default_gpus import shares_ram
from moelauncher.meters.source import BACKEND_SOURCE, normalise_pci


class BackendReportMeter:
    """One reading for each GPU of the build; the CPU is no GPU."""

    name = BACKEND_SOURCE

    def __init__(self, devices: Callable[[], Sequence[BackendDevice]]) -> None:
        self._devices = devices

    def read(self) -> list[GpuReading]:
        """All GPUs of the build. The first call may take as long as loading the library."""
        return [
            GpuReading(
                name=device.description or device.name,
                source=f"{self.name} ({device.backend})",
                total_bytes=device.total_bytes,
                used_bytes=_used_bytes(device),
                free_bytes=device.free_bytes,
                device_name=device.name,
                pci_address=normalise_pci(device.pci_address),
                shares_ram=shares_ram(device),
            )
            for device in self._devices()
            if device.kind in ("gpu", "igpu")
        ]

    def close(self) -> None:
        """Nothing is held open."""


def _used_bytes(device: BackendDevice) -> int | None:
    if device.total_bytes is None or device.free_bytes is None:
        return None
    return max(0, device.total_bytes - device.free_bytes)
