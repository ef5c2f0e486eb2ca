"""A machine as the doctor finds it, to be changed by tests: an RTX 4070 that all of them see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.program.doctor_facts import (
    NVIDIA,
    VULKAN_ANSWERS,
    BuildState,
    BusGpu,
    DiskSpeed,
    DoctorFacts,
    GpuSightings,
    VulkanGpu,
    VulkanSurvey,
)

GIB = 1 << 30
PCI = "0000:01:00.0"
CPU = BackendDevice("CPU", "Ryzen 7 7800X3D", "cpu", "CPU", 1, 2)
GPU = BackendDevice(
    "Vulkan0", "NVIDIA GeForce RTX 4070", "gpu", "Vulkan", 11 * GIB, 12 * GIB, pci_address=PCI
)
READING = GpuReading(
    "NVIDIA GeForce RTX 4070",
    "NVML",
    total_bytes=12 * GIB,
    free_bytes=11 * GIB,
    device_name="Vulkan0",
    pci_address=PCI,
    temperature_c=50,
)
CARD = BusGpu(NVIDIA, "GeForce RTX 4070", PCI, "nvidia", "570.86", 12 * GIB)
LISTED = VulkanGpu(
    "NVIDIA GeForce RTX 4070", NVIDIA, "discrete", "570.86.00", "1.4.303", 12 * GIB, 12 * GIB
)
SNAPSHOT = MachineSnapshot(0.0, 64 * GIB, 50 * GIB, 1, gpus=(READING,))
BUILD = BuildState(
    version="0.3.36",
    library_folder="/opt/moelauncher/llama_cpp/lib",
    features="CPU : AVX = 1 | AVX2 = 1 |",
    cpu_variant="zen4",
    cpu_variants=("zen4", "haswell", "x64"),
    gpu_modules=("vulkan",),
    gpu_modules_found=("cuda", "vulkan"),
    gpu_offload=True,
)
SIGHTINGS = GpuSightings(
    devices=(GPU, CPU),
    bus=(CARD,),
    vulkan=VulkanSurvey(VULKAN_ANSWERS, (LISTED,)),
    build=BUILD,
    packaged=True,
)
FACTS = DoctorFacts(
    version="0.1.0",
    system="Linux 6.1 x86_64",
    python="3.11.2",
    program="/opt/moelauncher/moelauncher",
    snapshot=SNAPSHOT,
    sightings=SIGHTINGS,
    cpu_name="Ryzen 7 7800X3D",
    physical_cores=8,
    logical_cores=16,
    ram_bytes_per_s=61e9,
    disk=DiskSpeed(Path("/models"), 2.1e9),
)


def facts(snapshot: MachineSnapshot = SNAPSHOT, **changes: Any) -> DoctorFacts:
    """The machine with changed fields; those of the sightings and of the build are found."""
    build_fields = {f: v for f, v in changes.items() if f in BuildState.__dataclass_fields__}
    seen_fields = {f: v for f, v in changes.items() if f in GpuSightings.__dataclass_fields__}
    for name in (*build_fields, *seen_fields):
        del changes[name]
    seen = replace(SIGHTINGS, build=replace(BUILD, **build_fields))
    return replace(FACTS, snapshot=snapshot, sightings=replace(seen, **seen_fields), **changes)
