"""What the doctor looked at, as frozen values. Unknown is ``None``, never 0; bytes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moelauncher.core.machine import BackendDevice, MachineSnapshot

NVIDIA, AMD, INTEL = "NVIDIA", "AMD", "Intel"
_VENDORS = {0x10DE: NVIDIA, 0x1002: AMD, 0x1022: AMD, 0x8086: INTEL, 0x10005: "Mesa"}


def vendor_name(vendor_id: int) -> str:
    """Who made it, by the number of the PCI registry; the number where that is nobody known."""
    return _VENDORS.get(vendor_id, f"{vendor_id:04x}")


@dataclass(frozen=True)
class BusGpu:
    """A graphics card as the system finds it on its bus, with or without a driver."""

    vendor: str
    name: str
    #: "0000:01:00.0", lower case; None where the system does not tell.
    pci_address: str | None = None
    #: What drives it ("nvidia", "amdgpu", "nouveau", "BasicDisplay"); None: nothing does.
    driver: str | None = None
    driver_version: str | None = None
    #: The largest part of its memory that the processor can reach at once.
    visible_bytes: int | None = None


@dataclass(frozen=True)
class VulkanGpu:
    """A device as the Vulkan loader lists it."""

    name: str
    vendor: str
    #: "discrete", "integrated", "virtual", "software" or "other".
    kind: str
    driver_version: str
    api_version: str
    total_bytes: int | None = None
    #: What of it the processor can reach at once: all of it with Resizable BAR.
    visible_bytes: int | None = None


@dataclass(frozen=True)
class VulkanSurvey:
    """What Vulkan says without llama.cpp. ``state`` is one of the four below."""

    state: str
    gpus: tuple[VulkanGpu, ...] = ()
    #: The reason in the loader's or the driver's words; "" where all is well.
    problem: str = ""
    #: File names of the drivers that announce themselves (Linux).
    drivers: tuple[str, ...] = ()


#: The loader is missing; it refuses; a driver ended the asking process; it answers.
VULKAN_MISSING, VULKAN_REFUSES, VULKAN_CRASHES, VULKAN_ANSWERS = (
    "missing",
    "refuses",
    "crashes",
    "answers",
)


@dataclass(frozen=True)
class DiskSpeed:
    """How fast the folder's disk was read; None: there was nothing to read, see ``problem``."""

    folder: Path
    bytes_per_s: float | None
    problem: str = ""


@dataclass(frozen=True)
class BuildState:
    """The installed llama.cpp, as far as it starts."""

    #: Why it does not; "" where it does.
    problem: str = ""
    version: str = ""
    library_folder: str = ""
    #: llama.cpp's own line about the processor features that it was built for.
    features: str = ""
    cpu_variant: str | None = None
    cpu_variants: tuple[str, ...] = ()
    #: GPU modules that were loaded, and whether the build can use a GPU at all.
    gpu_modules: tuple[str, ...] = ()
    #: All GPU modules that the build brings, those that the user does not want too.
    gpu_modules_found: tuple[str, ...] = ()
    gpu_offload: bool | None = None
    #: What had to be left out or worked around, as sentences.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuSightings:
    """Who sees which GPU, apart from the meters."""

    #: What llama.cpp can compute on, the processor too.
    devices: tuple[BackendDevice, ...] = ()
    bus: tuple[BusGpu, ...] = ()
    #: None: Vulkan was not asked by itself.
    vulkan: VulkanSurvey | None = None
    build: BuildState = BuildState()
    #: The user's choice of GPU interfaces; "" or "auto": all.
    wish: str = ""
    #: Whether this is a package of the program, with llama.cpp inside.
    packaged: bool = False
    is_windows: bool = False


@dataclass(frozen=True)
class DoctorFacts:
    """The machine and the installation at one moment."""

    version: str
    system: str
    python: str
    program: str
    snapshot: MachineSnapshot
    sightings: GpuSightings
    cpu_name: str | None = None
    physical_cores: int | None = None
    logical_cores: int | None = None
    ram_bytes_per_s: float | None = None
    disk: DiskSpeed | None = None
    #: Where settings, chats, caches and logs are, by what they are.
    folders: Mapping[str, str] = field(default_factory=dict)
    #: What is known of the package's making; empty for a program from a checkout.
    package: Mapping[str, object] = field(default_factory=dict)
    #: Variables that name folders which are not there, with what they name.
    stale_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def build(self) -> BuildState:
        """The installed llama.cpp."""
        return self.sightings.build
