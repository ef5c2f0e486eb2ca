"""A load held against its forecast: planned and real bytes, device by device, kind by kind.

In: the forecast that the load was made by, llama.cpp's own report, and what the meters saw
before and after. Out: :class:`LoadComparison`, with the text to send where the forecast was
wrong. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import LoadReport
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from moelauncher.core.memory.own_share import gpu_key
from moelauncher.core.memory.placement import RAM
from moelauncher.core.units import MIB, format_bytes

#: What is compared, in the gauge's order.
COMPARED_KINDS = ("weights", "kv", "recurrent", "compute")

#: Beyond either of these a forecast is a bug ...
_WRONG_SHARE = 0.01
_WRONG_BYTES = 16 * MIB
#: ... but llama.cpp's log has two decimals of a MiB a buffer, so less than this is none.
_ROUNDING_BYTES = round(0.12 * MIB)
#: A meter that moved by less than this share of the load did not see it (unified memory,
#: drivers that always answer the same).
_BLIND_SHARE = 0.05


@dataclass(frozen=True)
class KindComparison:
    """One kind of memory on one device. ``real_bytes`` None: llama.cpp does not tell it."""

    device: str
    kind: str  # one of COMPARED_KINDS
    planned_bytes: int
    real_bytes: int | None
    source: str  # of the plan: "header", "dry-run" or "estimate"

    @property
    def difference_bytes(self) -> int | None:
        """Real less planned."""
        return None if self.real_bytes is None else self.real_bytes - self.planned_bytes

    @property
    def wrong(self) -> bool:
        """Whether this is a fault of the forecast: an estimate may be off, it says so."""
        difference = self.difference_bytes
        if difference is None or self.source == "estimate":
            return False
        off = abs(difference)
        share = off > _WRONG_SHARE * self.planned_bytes and off > _ROUNDING_BYTES
        return share or off > _WRONG_BYTES


@dataclass(frozen=True)
class DeviceComparison:
    """One device as a whole. ``measured_bytes``: used after the load less used before, by
    the meters; None where they do not tell. ``had_context``: this process had computed on
    the device before, so the driver took its own share already."""

    device: str
    planned_bytes: int  # the driver's share included
    driver_bytes: int  # of these, what was planned for the driver
    buffer_bytes: int  # all buffers that llama.cpp reported
    measured_bytes: int | None
    had_context: bool = False


@dataclass(frozen=True)
class LoadComparison:
    """Everything about one load. GPUs first, main memory last."""

    rows: tuple[KindComparison, ...]
    devices: tuple[DeviceComparison, ...]

    @property
    def wrong(self) -> tuple[KindComparison, ...]:
        """The rows in which the forecast failed; none: it held."""
        return tuple(row for row in self.rows if row.wrong)


def buffer_device(name: str, gpu_names: Collection[str]) -> str:
    """The GPU that a buffer called ``name`` lies on; "RAM" for all others (CPU, pinned host)."""
    for gpu in gpu_names:
        if name == gpu or name.startswith(f"{gpu}_"):
            return gpu
    return RAM


def compare_load(
    forecast: MemoryForecast,
    report: LoadReport,
    *,
    use_mmap: bool,
    measured_bytes: Mapping[str, int] | None = None,
    had_context: Collection[str] = (),
    weights_told: bool = True,
) -> LoadComparison:
    """Hold ``report`` against the forecast of the same placement and context.

    ``measured_bytes``: by device name, see :func:`measured_use`. Devices of the forecast that
    the load did not know (imagined ones) are left out. ``weights_told``: whether the GPUs had
    said which weights they refuse; until then the header's sum is an estimate.
    """
    names = [device.name for device in report.placement.devices]
    real: dict[tuple[str, str], int] = {}
    for buffer in report.buffers:
        # The logits' host buffer is planned with the compute buffers.
        kind = "compute" if buffer.kind == "output" else buffer.kind
        key = (buffer_device(buffer.device, names), kind)
        real[key] = real.get(key, 0) + buffer.n_bytes
    rows: list[KindComparison] = []
    devices: list[DeviceComparison] = []
    for device in forecast.devices:
        if device.kind == "gpu" and device.name not in names:
            continue
        here = _rows(device, real, use_mmap, "header" if weights_told else "estimate")
        rows += here
        if device.kind == "gpu":
            measured = (measured_bytes or {}).get(device.name)
            devices.append(
                DeviceComparison(
                    device=device.name,
                    planned_bytes=device.used_bytes,
                    driver_bytes=device.driver_bytes,
                    buffer_bytes=sum(row.real_bytes or 0 for row in here),
                    measured_bytes=None if _blind(measured, device) else measured,
                    had_context=device.name in had_context,
                )
            )
    return LoadComparison(tuple(rows), tuple(devices))


def with_measured(comparison: LoadComparison, measured_bytes: Mapping[str, int]) -> LoadComparison:
    """The same comparison once the meters have answered."""

    def seen(device: DeviceComparison) -> DeviceComparison:
        measured = measured_bytes.get(device.device)
        if measured is None or measured < device.planned_bytes * _BLIND_SHARE:
            return device
        return replace(device, measured_bytes=measured)

    return replace(comparison, devices=tuple(map(seen, comparison.devices)))


def measured_use(before: MachineSnapshot, after: MachineSnapshot) -> dict[str, int]:
    """By llama.cpp's device name: bytes used after a load less those used before.

    Where the driver tells what this process holds, that is taken: another program may
    have grown or ended meanwhile. A GPU that is not told of in both is left out.
    """
    earlier = {gpu_key(gpu): gpu for gpu in before.gpus}
    result: dict[str, int] = {}
    for gpu in after.gpus:
        was = earlier.get(gpu_key(gpu))
        if gpu.device_name is None or was is None:
            continue
        if gpu.own_bytes is not None:
            result[gpu.device_name] = gpu.own_bytes - (was.own_bytes or 0)
        elif gpu.used_bytes is not None and was.used_bytes is not None:
            result[gpu.device_name] = gpu.used_bytes - was.used_bytes
    return result


def comparison_table(comparison: LoadComparison) -> str:
    """The comparison as lines of text in columns, for the log and for a report.

    Not translated: it is read by whoever mends the forecast.
    """
    lines = ["device      kind           planned         real   difference  source"]
    for row in comparison.rows:
        real, difference = "not told", ""
        if row.real_bytes is not None and row.difference_bytes is not None:
            real = f"{row.real_bytes / MIB:.2f}"
            difference = f"{row.difference_bytes / MIB:+.2f}"
        mark = "  <-- wrong" if row.wrong else ""
        lines.append(
            f"{row.device:<10}  {row.kind:<10}  {row.planned_bytes / MIB:10.2f}"
            f"  {real:>11}  {difference:>11}  {row.source}{mark}"
        )
    for device in comparison.devices:
        measured = "not told"
        if device.measured_bytes is not None:
            measured = f"{device.measured_bytes / MIB:.0f}"
        lines.append(
            f"{device.device}: {device.planned_bytes / MIB:.0f} planned with"
            f" {device.driver_bytes / MIB:.0f} for the driver, {measured} measured (MiB)"
        )
    return "\n".join(lines)


def largest_difference(rows: tuple[KindComparison, ...]) -> str:
    """ "CUDA0 kv +12.0 MiB": the row that is furthest off; "" where there is none."""
    known = [row for row in rows if row.difference_bytes]
    if not known:
        return ""
    worst = max(known, key=lambda row: abs(row.difference_bytes or 0))
    off = worst.difference_bytes or 0
    sign = "+" if off > 0 else "-"
    return f"{worst.device} {worst.kind} {sign}{format_bytes(abs(off))}"


def _rows(
    device: DeviceForecast,
    real: Mapping[tuple[str, str], int],
    use_mmap: bool,
    weights_source: str,
) -> list[KindComparison]:
    planned = {
        "weights": (device.weights_bytes, weights_source),
        "kv": (device.kv_bytes, "dry-run"),
        "recurrent": (device.recurrent_bytes, "dry-run"),
        "compute": (device.compute_bytes, device.compute_source),
    }
    rows = []
    for kind in COMPARED_KINDS:
        n_bytes, source = planned[kind]
        found: int | None = real.get((device.name, kind), 0)
        if device.kind == "cpu" and kind == "weights" and use_mmap:
            # llama.cpp logs a span of the mapped file there, not what is used of it.
            found = None
        if n_bytes or found:
            rows.append(KindComparison(device.name, kind, n_bytes, found, source))
    return rows


def _blind(measured: int | None, device: DeviceForecast) -> bool:
    return measured is None or measured < device.used_bytes * _BLIND_SHARE


def report_text(
    comparison: LoadComparison, report: LoadReport, *, model: str, build: str, choices: str
) -> str:
    """The whole load for whoever mends the forecast: no folder names in it."""
    context = report.context
    buffers = [f"  {b.device} {b.kind} {b.n_bytes / MIB:.2f} MiB" for b in report.buffers]
    return "\n".join(
        (
            f"MoE Launcher load report, build: {build}",
            f"model: {model}",
            f"placement: {choices}",
            f"context: {context.n_ctx} asked, {report.n_ctx} made, KV {context.kv_type},"
            f" ubatch {context.n_ubatch}, flash attention {report.flash_attention}",
            "",
            comparison_table(comparison),
            "",
            "llama.cpp's buffers:",
            *buffers,
            *report.mismatches,
            *report.warnings,
        )
    )
