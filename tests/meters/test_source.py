"""Joining what several sources say of one GPU."""

from __future__ import annotations

import pytest

from moelauncher.core.machine import GpuHolder, GpuReading
from moelauncher.meters.source import gpu_note, merge_gpus, normalise_pci

NVML = GpuReading(
    "NVIDIA GeForce RTX 4070",
    "NVML",
    total_bytes=100,
    used_bytes=30,
    free_bytes=70,
    pci_address="0000:01:00.0",
)
LLAMA = GpuReading(
    "NVIDIA GeForce RTX 4070",
    "llama.cpp (CUDA)",
    total_bytes=99,
    used_bytes=29,
    free_bytes=70,
    device_name="CUDA0",
    pci_address="0000:01:00.0",
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:01:00.0", "0000:01:00.0"),
        ("0000:0A:00.1", "0000:0a:00.1"),
        ("0000:01:00", "0000:01:00.0"),
        ("", None),
        (None, None),
        ("GPU-1234", None),
    ],
)
def test_pci_addresses_in_one_form(text: str | None, address: str | None) -> None:
    assert normalise_pci(text) == address


def test_the_first_source_keeps_its_numbers_and_gets_the_device_name() -> None:
    (gpu,) = merge_gpus([[NVML], [LLAMA]])
    assert (gpu.total_bytes, gpu.used_bytes) == (100, 30)
    assert gpu.device_name == "CUDA0"
    assert gpu.source == "NVML"


def test_what_is_filled_in_names_its_source() -> None:
    spill = GpuReading(NVML.name, "PDH", used_bytes=31, shared_bytes=7)
    (gpu,) = merge_gpus([[NVML], [spill]])
    assert (gpu.used_bytes, gpu.shared_bytes) == (30, 7)
    assert gpu.source == "NVML + PDH"


def test_holders_with_sizes_win_over_bare_names() -> None:
    bare = GpuReading("A", "NVML", holders=(GpuHolder(1, "game", None),))
    sized = GpuReading("A", "PDH", holders=(GpuHolder(1, "game", 5),))
    (gpu,) = merge_gpus([[bare], [sized]])
    assert gpu.holders == (GpuHolder(1, "game", 5),)


def test_the_same_name_elsewhere_is_another_card() -> None:
    other = GpuReading(NVML.name, "llama.cpp", device_name="CUDA1", pci_address="0000:02:00.0")
    assert len(merge_gpus([[NVML], [other]])) == 2


def test_two_equal_cards_without_addresses_are_paired_in_order() -> None:
    drivers = [GpuReading("RTX 3060", "NVML", used_bytes=n) for n in (1, 2)]
    llama = [GpuReading("NVIDIA RTX 3060", "llama.cpp", device_name=f"CUDA{n}") for n in (0, 1)]
    merged = merge_gpus([drivers, llama])
    assert [(gpu.used_bytes, gpu.device_name) for gpu in merged] == [(1, "CUDA0"), (2, "CUDA1")]


def test_vulkan_names_match_despite_the_driver_in_brackets() -> None:
    amd = GpuReading("AMD Radeon RX 7900 XTX", "amdgpu", used_bytes=3)
    vulkan = GpuReading("Radeon RX 7900 XTX (RADV NAVI31)", "llama.cpp", device_name="Vulkan0")
    (gpu,) = merge_gpus([[amd], [vulkan]])
    assert gpu.device_name == "Vulkan0"


def test_different_cards_stay_apart() -> None:
    llvmpipe = GpuReading("llvmpipe (LLVM 15.0.6, 256 bits)", "llama.cpp", device_name="Vulkan0")
    assert [gpu.device_name for gpu in merge_gpus([[NVML], [llvmpipe]])] == [None, "Vulkan0"]


def test_no_note_while_the_build_has_not_spoken_or_has_a_gpu() -> None:
    assert gpu_note([], backend_known=False) == ""
    assert gpu_note([LLAMA], backend_known=True) == ""


def test_no_gpu_anywhere() -> None:
    assert "uses no GPU" in gpu_note([], backend_known=True)


def test_a_gpu_that_the_build_cannot_use_says_who_knows_why() -> None:
    note = gpu_note([NVML], backend_known=True)
    assert "NVIDIA GeForce RTX 4070" in note
    assert "doctor" in note


def test_of_an_integrated_gpu_llama_cpps_numbers_count() -> None:
    """The driver tells of the part set aside, and calls the rest shared."""
    driver = GpuReading(
        "AMD Radeon 780M",
        "amdgpu",
        total_bytes=512,
        used_bytes=500,
        free_bytes=12,
        shared_bytes=9000,
        temperature_c=50.0,
        pci_address="0000:c4:00.0",
    )
    backend = GpuReading(
        "AMD Radeon 780M (RADV PHOENIX)",
        "llama.cpp (Vulkan)",
        total_bytes=16000,
        used_bytes=1000,
        free_bytes=15000,
        device_name="Vulkan0",
        pci_address="0000:c4:00.0",
        shares_ram=True,
    )
    (gpu,) = merge_gpus([[driver], [backend]])
    assert (gpu.total_bytes, gpu.used_bytes, gpu.free_bytes) == (16000, 1000, 15000)
    assert gpu.shared_bytes is None, "what it uses of main memory is no spill"
    assert gpu.shares_ram
    assert gpu.temperature_c == 50.0
    assert gpu.source == "amdgpu + llama.cpp (Vulkan)"
