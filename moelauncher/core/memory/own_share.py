"""What a loaded model takes of each GPU and of main memory, seen from outside.

In: a snapshot from before the load and one from now. Out: :class:`OwnShare`, which is
subtracted when the next load is judged, since the loaded model goes first. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moelauncher.core.machine import GpuReading, MachineSnapshot


@dataclass(frozen=True)
class OwnShare:
    """Bytes that an unload gives back. A GPU that is not in ``gpu_bytes`` is unknown."""

    gpu_bytes: Mapping[str, int] = field(default_factory=dict)  # by gpu_key
    ram_bytes: int = 0


def gpu_key(gpu: GpuReading) -> str:
    """What names the same GPU in every snapshot: where it sits, or what it is called."""
    return gpu.pci_address or gpu.device_name or gpu.name


def own_share(
    before: MachineSnapshot | None, now: MachineSnapshot, ram_buffer_bytes: int = 0
) -> OwnShare:
    """Used now minus used before the load; the driver's own word where it gives one.

    ``before`` is None when nothing was loaded: then the share is nothing.
    ``ram_buffer_bytes`` is what llama.cpp said it allocated in main memory, mapped weights
    left out: pinned memory is the driver's, and need not count as this process's.
    """
    if before is None:
        return OwnShare()
    own_before = {gpu_key(gpu): gpu.own_bytes for gpu in before.gpus}
    used_before = {gpu_key(gpu): gpu.used_bytes for gpu in before.gpus}
    shares: dict[str, int] = {}
    for gpu in now.gpus:
        earlier = used_before.get(gpu_key(gpu))
        if gpu.own_bytes is not None:
            # A context that was there before the load stays when the model goes.
            was = own_before.get(gpu_key(gpu)) or 0
            shares[gpu_key(gpu)] = max(0, gpu.own_bytes - was)
        elif gpu.used_bytes is not None and earlier is not None:
            shares[gpu_key(gpu)] = max(0, gpu.used_bytes - earlier)
    grown = now.own_ram_bytes - before.own_ram_bytes
    return OwnShare(shares, max(0, grown, ram_buffer_bytes))


def free_for_reload(gpu: GpuReading, share: OwnShare) -> int | None:
    """Free bytes of ``gpu`` once our own model is unloaded; None where that is unknown."""
    if gpu.free_bytes is None:
        return None
    free = gpu.free_bytes + share.gpu_bytes.get(gpu_key(gpu), 0)
    return free if gpu.total_bytes is None else min(free, gpu.total_bytes)
