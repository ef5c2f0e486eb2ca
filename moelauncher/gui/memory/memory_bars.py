"""What the gauge draws, as plain values: one bar a device, its segments, its limit.

In: the machine as measured, the forecast of what is being planned, and the forecast of what
is loaded. Out: :class:`Bar` values. Pure; no Qt; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadReport
from moelauncher.core.machine import GpuHolder, GpuReading, MachineSnapshot
from moelauncher.core.memory.launch_plan import IMAGINED_GPU
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from moelauncher.core.memory.placement import RAM

#: In the order in which they are drawn, after "others".
KINDS = ("lent", "driver", "dense", "experts", "kv", "recurrent", "compute")


@dataclass(frozen=True)
class Segment:
    """One use of a device's memory: what lies there now, and what will after the launch."""

    kind: str  # "others" or one of KINDS
    now_bytes: int
    then_bytes: int
    source: str  # "measured", "header", "dry-run", "estimate"


@dataclass(frozen=True)
class Bar:
    """One device. ``over_bytes`` is what exceeds the memory less the margin."""

    name: str  # llama.cpp's or the user's name; "RAM" for main memory
    label: str  # the device's own name for people; may be empty
    is_gpu: bool
    total_bytes: int | None
    segments: tuple[Segment, ...]
    leave_free_bytes: int
    over_bytes: int
    measured_used_bytes: int | None
    meter: str  # who measured; empty when nobody
    imagined: bool = False  # a GPU that would do, drawn where there is none
    shares_ram: bool = False  # an integrated GPU: its memory is part of main memory
    holders: tuple[GpuHolder, ...] = ()  # the other programs, largest first, where known

    @property
    def then_bytes(self) -> int:
        """Everything in use after the launch, other programs included."""
        return sum(segment.then_bytes for segment in self.segments)

    @property
    def scale_bytes(self) -> int:
        """What the bar's full width stands for: the memory, or more where it is over-full."""
        return max(self.total_bytes or 0, self.then_bytes + self._beyond, 1)

    @property
    def _beyond(self) -> int:
        # Without a known size there is no end to draw, so leave some air instead.
        return self.then_bytes // 4 if self.total_bytes is None else 0


def bars_of(
    snapshot: MachineSnapshot | None,
    forecast: MemoryForecast | None,
    loaded: MemoryForecast | None,
    weights_mapped: bool = True,
) -> tuple[Bar, ...]:
    """The bars to draw, GPUs first. ``weights_mapped``: the loaded weights in RAM are mapped
    from the file, and so are not counted as used by the system."""
    plan = forecast or loaded
    if plan is None:
        return _measured_only(snapshot)
    gpus = snapshot.gpus if snapshot else ()
    bars = []
    for index, device in enumerate(plan.devices):
        present = _device_named(loaded, device.name)
        if device.kind == "gpu" and device.name == IMAGINED_GPU.name:
            bars.append(replace(_gpu_bar(None, device, None), imagined=True))
        elif device.kind == "cpu":
            bars.append(_ram_bar(snapshot, device, present, weights_mapped))
        else:
            bars.append(_gpu_bar(_reading_of(gpus, device.name, index), device, present))
    return tuple(bars)


def _measured_only(snapshot: MachineSnapshot | None) -> tuple[Bar, ...]:
    if snapshot is None:
        return ()
    bars = [
        Bar(
            name=gpu.device_name or gpu.name,
            label=short_device(gpu.name),
            is_gpu=True,
            total_bytes=gpu.total_bytes,
            segments=_others(gpu.used_bytes),
            leave_free_bytes=0,
            over_bytes=0,
            measured_used_bytes=gpu.used_bytes,
            meter=gpu.source,
            holders=gpu.holders,
        )
        for gpu in snapshot.gpus
    ]
    used = snapshot.ram_total_bytes - snapshot.ram_available_bytes
    bars.append(Bar(RAM, "", False, snapshot.ram_total_bytes, _others(used), 0, 0, None, "psutil"))
    return tuple(bars)


def _others(used_bytes: int | None) -> tuple[Segment, ...]:
    known = used_bytes or 0
    return (Segment("others", known, known, "measured"),)


def _gpu_bar(
    reading: GpuReading | None, device: DeviceForecast, present: DeviceForecast | None
) -> Bar:
    total = device.total_bytes or (reading.total_bytes if reading else None)
    used = reading.used_bytes if reading else None
    if device.free_bytes is not None and total is not None:
        others = max(0, total - device.free_bytes)
    elif used is not None:
        others = max(0, used - (present.used_bytes if present else 0))
    else:
        others = 0
    return Bar(
        name=device.name,
        label=short_device(reading.name) if reading else "",
        is_gpu=True,
        total_bytes=total,
        segments=_segments(others, device, present),
        leave_free_bytes=device.leave_free_bytes,
        over_bytes=_over(total, others, device),
        measured_used_bytes=used,
        meter=reading.source if reading else "",
        shares_ram=device.shares_ram,
        holders=reading.holders if reading else (),
    )


def _ram_bar(
    snapshot: MachineSnapshot | None,
    device: DeviceForecast,
    present: DeviceForecast | None,
    weights_mapped: bool,
) -> Bar:
    total = device.total_bytes or (snapshot.ram_total_bytes if snapshot else None)
    if device.free_bytes is not None and total is not None:
        others = max(0, total - device.free_bytes)
    elif snapshot is not None:
        own = 0
        if present is not None:
            own = present.used_bytes - (present.weights_bytes if weights_mapped else 0)
        others = max(0, snapshot.ram_total_bytes - snapshot.ram_available_bytes - own)
    else:
        others = 0
    return Bar(
        name=device.name,
        label="",
        is_gpu=False,
        total_bytes=total,
        segments=_segments(others, device, present),
        leave_free_bytes=device.leave_free_bytes,
        over_bytes=_over(total, others, device),
        measured_used_bytes=None,
        meter="psutil" if snapshot else "",
    )


def _over(total: int | None, others: int, device: DeviceForecast) -> int:
    spare = device.spare_bytes
    if spare is None and total is not None:
        spare = total - others - device.used_bytes - device.leave_free_bytes
    return max(0, -spare) if spare is not None else 0


def _segments(
    others: int, device: DeviceForecast, present: DeviceForecast | None
) -> tuple[Segment, ...]:
    segments = [Segment("others", others, others, "measured")]
    for kind in KINDS:
        then = _bytes_of(device, kind)
        now = _bytes_of(present, kind) if present else 0
        if kind in ("dense", "experts"):
            source = "header"
        elif kind == "driver":
            source = "estimate"
        else:
            source = device.compute_source
        segments.append(Segment(kind, now, then, source))
    return tuple(segments)


def _bytes_of(device: DeviceForecast, kind: str) -> int:
    return {
        "lent": device.lent_bytes,
        "driver": device.driver_bytes,
        "dense": device.dense_bytes,
        "experts": device.expert_bytes,
        "kv": device.kv_bytes,
        "recurrent": device.recurrent_bytes,
        "compute": device.compute_bytes,
    }[kind]


def _device_named(forecast: MemoryForecast | None, name: str) -> DeviceForecast | None:
    if forecast is None:
        return None
    return next((device for device in forecast.devices if device.name == name), None)


def _reading_of(gpus: Sequence[GpuReading], name: str, index: int) -> GpuReading | None:
    for gpu in gpus:
        if name in (gpu.device_name, gpu.name):
            return gpu
    unnamed = [gpu for gpu in gpus if gpu.device_name is None]
    return unnamed[index] if index < len(unnamed) == len(gpus) else None


def short_device(name: str) -> str:
    """A GPU's name without its maker's flourish: "RTX 4070"."""
    short = name
    for flourish in ("NVIDIA ", "GeForce ", "AMD ", "Intel(R) ", "(TM)", "(R)", " Graphics"):
        short = short.replace(flourish, "")
    return short.strip() or name


def loaded_forecast(report: LoadReport, plan: MemoryForecast) -> MemoryForecast:
    """``plan`` with the numbers that llama.cpp reported for its GPUs' buffers.

    Main memory keeps the plan's: for mapped weights llama.cpp reports a span of the file.
    """
    measured: dict[tuple[str, str], int] = {}
    for buffer in report.buffers:
        key = (buffer.device, buffer.kind)
        measured[key] = measured.get(key, 0) + buffer.n_bytes
    devices: list[DeviceForecast] = []
    for device in plan.devices:
        if device.kind == "gpu":
            weights = measured.get((device.name, "weights"))
            loaded = replace(
                device,
                dense_bytes=device.dense_bytes
                if weights is None
                else max(0, weights - device.expert_bytes),
                kv_bytes=measured.get((device.name, "kv"), device.kv_bytes),
                recurrent_bytes=measured.get((device.name, "recurrent"), device.recurrent_bytes),
                compute_bytes=measured.get((device.name, "compute"), device.compute_bytes),
            )
        elif device.lent_bytes:
            lent = sum(gpu.used_bytes for gpu in devices if gpu.shares_ram)
            loaded = replace(device, lent_bytes=lent)
        else:
            loaded = device
        devices.append(loaded)
    return replace(plan, devices=tuple(devices))
