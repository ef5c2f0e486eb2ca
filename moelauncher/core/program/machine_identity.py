"""The machine's name for measurements: what has to be equal for numbers to be comparable.

In: the devices of the build, the meters' snapshot. Out: :class:`Machine`. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.speed.measurement import Machine
from moelauncher.core.units import GIB


def machine_identity(
    devices: Sequence[BackendDevice], snapshot: MachineSnapshot | None, version: str
) -> Machine:
    """``version`` is llama-cpp-python's. A build without GPUs is another machine's equal."""
    cpu = next((one.description for one in devices if one.kind == "cpu"), "")
    gpus = [one for one in devices if one.kind == "gpu"]
    parts = [cpu.strip() or "CPU", *(gpu.description.strip() or gpu.name for gpu in gpus)]
    if snapshot is not None:
        parts.append(f"{round(snapshot.ram_total_bytes / GIB)} GiB RAM")
    backends = sorted({gpu.backend for gpu in gpus}) or ["CPU"]
    drivers = {gpu.driver for gpu in (snapshot.gpus if snapshot else ()) if gpu.driver}
    return Machine(
        name=", ".join(parts),
        build=f"llama-cpp-python {version} {'+'.join(backends)}".strip(),
        driver=", ".join(sorted(drivers)),
    )
