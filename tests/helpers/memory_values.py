"""Forecasts and snapshots with round numbers, for tests of what the window shows."""

from __future__ import annotations

from moelauncher.core.machine import GpuReading, MachineSnapshot
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from moelauncher.core.memory.placement import RAM

GIB = 1 << 30
MIB = 1 << 20


def device(name: str = "CUDA0", **changes: object) -> DeviceForecast:
    """A GPU of 12 GiB, 11 free, that takes 8 GiB (4 of them experts) and keeps 1 free."""
    values: dict[str, object] = {
        "name": name,
        "kind": "cpu" if name == RAM else "gpu",
        "dense_bytes": 2 * GIB,
        "expert_bytes": 4 * GIB,
        "kv_bytes": GIB // 2,
        "recurrent_bytes": 0,
        "compute_bytes": GIB,
        "compute_source": "dry-run",
        "driver_bytes": GIB // 2,
        "leave_free_bytes": GIB,
        "free_bytes": 11 * GIB,
        "total_bytes": 12 * GIB,
    }
    return DeviceForecast(**{**values, **changes})  # type: ignore[arg-type]


def main_memory(**changes: object) -> DeviceForecast:
    """32 GiB, 20 free, 10 of them for experts."""
    values: dict[str, object] = {
        "dense_bytes": 0,
        "expert_bytes": 10 * GIB,
        "kv_bytes": 0,
        "compute_bytes": 0,
        "driver_bytes": 0,
        "leave_free_bytes": 2 * GIB,
        "free_bytes": 20 * GIB,
        "total_bytes": 32 * GIB,
    }
    return device(RAM, **{**values, **changes})


def forecast(*gpus: DeviceForecast, text: str = "fits", **changes: object) -> MemoryForecast:
    """``gpus`` (one as above where none is given) and main memory."""
    devices = (*(gpus or (device(),)), main_memory())
    values: dict[str, object] = {
        "devices": devices,
        "fits": all(each.fits for each in devices),
        "spare_bytes": devices[0].spare_bytes,
        "text": text,
        "compute_source": "dry-run",
    }
    return MemoryForecast(**{**values, **changes})  # type: ignore[arg-type]


def snapshot(gpu_used_gib: float = 1, *gpus: GpuReading, note: str = "") -> MachineSnapshot:
    """One GPU of 12 GiB called CUDA0 (or ``gpus``), and 32 GiB of main memory, 12 in use."""
    used = round(gpu_used_gib * GIB)
    reading = GpuReading(
        name="NVIDIA GeForce RTX 4070",
        source="NVML",
        total_bytes=12 * GIB,
        used_bytes=used,
        free_bytes=12 * GIB - used,
        device_name="CUDA0",
    )
    return MachineSnapshot(
        time_s=1.0,
        ram_total_bytes=32 * GIB,
        ram_available_bytes=20 * GIB,
        own_ram_bytes=GIB,
        gpus=() if note else (gpus or (reading,)),
        gpu_note=note,
    )
