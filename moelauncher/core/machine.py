"""What the meters say, as frozen values. Unknown is ``None``, never 0; bytes are bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuHolder:
    """Another process that holds memory on a GPU."""

    pid: int
    name: str
    used_bytes: int | None


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment. ``source`` names who said it (shown in the tooltip)."""

    name: str
    source: str
    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    #: llama.cpp's name for the same device ("CUDA0", "Vulkan0"), where it could be matched.
    device_name: str | None = None
    #: PCI address "0000:01:00.0", lower case, where the source knows it; used for matching.
    pci_address: str | None = None
    temperature_c: float | None = None
    utilisation: float | None = None  # 0 to 1
    #: Memory that spilled from VRAM into shared system memory (Windows, AMD GTT).
    shared_bytes: int | None = None
    drives_display: bool | None = None
    pcie: str | None = None  # "4.0 x16"
    driver: str | None = None
    throttle_reasons: tuple[str, ...] = ()
    holders: tuple[GpuHolder, ...] = ()
    #: What this process holds of it, where the driver tells; else see own_share.py.
    own_bytes: int | None = None
    #: An integrated GPU: its memory is main memory.
    shares_ram: bool = False


@dataclass(frozen=True)
class MachineSnapshot:
    """The machine at one moment; ``time_s`` is on the monotonic clock."""

    time_s: float
    ram_total_bytes: int
    ram_available_bytes: int
    #: What main memory gets back when this process ends. Where the system counts a mapped
    #: file's pages as available while they are in use (Linux), they are not in it.
    own_ram_bytes: int
    swap_used_bytes: int | None = None
    cpu_utilisation: float | None = None  # 0 to 1, all cores
    gpus: tuple[GpuReading, ...] = ()
    #: Why there is no GPU to show ("no GPU in this build", or what is missing); else "".
    gpu_note: str = ""


@dataclass(frozen=True)
class BackendDevice:
    """A device of the loaded llama.cpp build, as ``ggml_backend_dev_*`` reports it."""

    name: str  # "CUDA0", "Vulkan0", "CPU"
    description: str  # "NVIDIA GeForce RTX 4070"
    kind: str  # "gpu", "igpu", "accel" or "cpu"
    backend: str  # "CUDA", "Vulkan", "CPU"
    free_bytes: int | None
    total_bytes: int | None
    pci_address: str | None = None
