"""NVIDIA GPUs through NVML, the driver's own library.

Opened at the first reading, closed once. Without an NVIDIA driver there are no readings
and no error; a driver that stops answering is a :class:`LauncherError`, and is opened
anew at the next reading. One thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.machine import GpuHolder, GpuReading
from moelauncher.core.translate import tr
from moelauncher.meters.ram import process_name
from moelauncher.meters.source import normalise_pci


class NvmlMeter:
    """One reading for each NVIDIA GPU of this machine."""

    name = "NVML"

    def __init__(self, name_of_process: Callable[[int], str] = process_name) -> None:
        self._name_of_process = name_of_process
        self._nvml: Any = None
        self._absent = False
        self._driver: str | None = None

    def read(self) -> list[GpuReading]:
        """All GPUs. Raises LauncherError when the driver stops answering."""
        if self._absent:
            return []
        try:
            if self._nvml is None and not self._open():
                return []
            count = self._nvml.nvmlDeviceGetCount()
        except Exception as error:  # a broken driver can fail below NVMLError as well
            raise self._failed(error) from error
        readings: list[GpuReading] = []
        failure: Exception | None = None
        for index in range(count):
            try:
                readings.append(self._read_one(self._nvml.nvmlDeviceGetHandleByIndex(index)))
            except self._nvml.NVMLError as error:  # one lost card must not hide the other
                failure = error
        if failure is not None and not readings:
            raise self._failed(failure) from failure
        return readings

    def close(self) -> None:
        """Shut NVML down, if it was opened."""
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            # A driver that is gone already has nothing left to give back.
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def _open(self) -> bool:
        import pynvml

        try:
            pynvml.nvmlInit()
        except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
            self._absent = True
            return False
        self._nvml = pynvml
        self._driver = self._ask(pynvml.nvmlSystemGetDriverVersion)
        return True

    def _failed(self, error: Exception) -> LauncherError:
        self.close()
        return LauncherError(
            tr("The NVIDIA driver stopped answering."),
            tr("If the driver was updated just now, restart the computer."),
            f"NVML: {error}",
        )

    def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """The one place that decides what "not supported" means: the answer, or None."""
        nvml = self._nvml
        try:
            return function(*args)
        except (
            nvml.NVMLError_NotSupported,
            nvml.NVMLError_FunctionNotFound,
            nvml.NVMLError_NoPermission,
            nvml.NVMLError_NoData,
            nvml.NVMLError_NotReady,
            nvml.NVMLError_InvalidArgument,
            UnicodeDecodeError,
        ):
            return None

    def _read_one(self, handle: Any) -> GpuReading:
        nvml, ask = self._nvml, self._ask
        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        rates = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        pci = ask(nvml.nvmlDeviceGetPciInfo, handle)
        display = ask(nvml.nvmlDeviceGetDisplayActive, handle)
        holders, own_bytes = self._holders(handle)
        return GpuReading(
            name=ask(nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU",
            source=self.name,
            total_bytes=None if memory is None else int(memory.total),
            used_bytes=None if memory is None else int(memory.used),
            free_bytes=None if memory is None else int(memory.free),
            pci_address=None if pci is None else _pci_text(pci.busId),
            temperature_c=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            utilisation=None if rates is None else rates.gpu / 100,
            drives_display=None if display is None else bool(display),
            pcie=_pcie_text(
                ask(nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
                ask(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
            ),
            driver=self._driver,
            throttle_reasons=self._throttle(handle),
            holders=holders,
            own_bytes=own_bytes,
        )

    def _holders(self, handle: Any) -> tuple[tuple[GpuHolder, ...], int | None]:
        """Other processes by size, and what this process holds (None where not told)."""
        nvml = self._nvml
        used: dict[int, int | None] = {}
        for function in (
            nvml.nvmlDeviceGetComputeRunningProcesses,
            nvml.nvmlDeviceGetGraphicsRunningProcesses,
        ):
            for process in self._ask(function, handle) or ():
                # A program that computes and draws stands in both lists with one number.
                used[process.pid] = used.get(process.pid) or process.usedGpuMemory
        own = used.pop(os.getpid(), None)
        holders = [GpuHolder(pid, self._name_of_process(pid), n) for pid, n in used.items()]
        holders.sort(key=lambda holder: (-(holder.used_bytes or 0), holder.pid))
        return tuple(holders), own

    def _throttle(self, handle: Any) -> tuple[str, ...]:
        nvml = self._nvml
        bits = self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        # Idle and the user's own clock settings are no disturbance, so they are left out.
        names = (
            (nvml.nvmlClocksThrottleReasonSwPowerCap, tr("power limit")),
            (nvml.nvmlClocksThrottleReasonHwSlowdown, tr("hardware slowdown")),
            (nvml.nvmlClocksThrottleReasonSwThermalSlowdown, tr("too hot")),
            (nvml.nvmlClocksThrottleReasonHwThermalSlowdown, tr("too hot (hardware)")),
            (nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown, tr("power brake")),
        )
        return tuple(name for bit, name in names if bits & bit)


def _pci_text(bus_id: bytes | str) -> str | None:
    return normalise_pci(bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id)


def _pcie_text(generation: int | None, width: int | None) -> str | None:
    if not generation or not width:
        return None
    return f"{generation}.0 x{width}"
