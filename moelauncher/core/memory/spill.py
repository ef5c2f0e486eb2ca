"""VRAM that moved into shared system memory: no error, a tenth of the speed.

In: snapshots from before a load and of now, and what llama.cpp itself keeps in pinned host
memory, which the same counters count. Out: :class:`Spill`. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from moelauncher.core.engine_protocol import LoadReport
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.memory.load_comparison import buffer_device
from moelauncher.core.memory.own_share import gpu_key
from moelauncher.core.units import MIB

#: Drivers keep a little there at all times, and it moves.
_SLACK_BYTES = 128 * MIB


@dataclass(frozen=True)
class Spill:
    """``n_bytes`` that should be on the GPU ``device`` lie in main memory instead."""

    device: str
    n_bytes: int


def main_memory_bytes(report: LoadReport) -> int:
    """What a load allocated in main memory; mapped weights are the file's, not allocated.

    The memory of integrated GPUs is main memory too.
    """
    names = [device.name for device in report.placement.devices if not device.shares_ram]
    return sum(
        buffer.n_bytes
        for buffer in report.buffers
        if buffer_device(buffer.device, names) not in names
        and not buffer.device.endswith("_Mapped")
    )


def find_spills(
    before: MachineSnapshot, now: MachineSnapshot, report: LoadReport
) -> tuple[Spill, ...]:
    """GPUs of the placement whose shared memory grew by more than is meant to lie there."""
    pinned = sum(buffer.n_bytes for buffer in report.buffers if buffer.device.endswith("_Host"))
    used = {device.name for device in report.placement.devices}
    earlier = {gpu_key(gpu): gpu.shared_bytes for gpu in before.gpus}
    spills = []
    for gpu in now.gpus:
        was = earlier.get(gpu_key(gpu))
        if gpu.shares_ram or gpu.device_name not in used or gpu.shared_bytes is None or was is None:
            continue
        spilled = gpu.shared_bytes - was - pinned
        if spilled > _SLACK_BYTES:
            spills.append(Spill(str(gpu.device_name), spilled))
    return tuple(spills)
