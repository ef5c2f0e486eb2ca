"""Which GPU is used, and what stands in the way of one that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moelauncher.core.machine import BackendDevice, GpuReading
from moelauncher.core.program.doctor_facts import (
    AMD,
    INTEL,
    NVIDIA,
    VULKAN_ANSWERS,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
    BuildState,
    BusGpu,
    VulkanSurvey,
)
from moelauncher.core.program.gpu_check import all_used, check_gpus, first_glance, unused_gpu
from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict
from tests.helpers.doctor_values import (
    CARD,
    CPU,
    GIB,
    GPU,
    LISTED,
    PCI,
    READING,
    SIGHTINGS,
    SNAPSHOT,
)

USED = "Vulkan0 (NVIDIA GeForce RTX 4070)"
RADEON = BusGpu(AMD, "Radeon RX 7900 XTX", "0000:03:00.0", "amdgpu", None, 256 << 20)
UNMATCHED = replace(SNAPSHOT, gpus=(replace(READING, device_name=None),))
NO_DEVICE = {"devices": (CPU,)}
CRASHES = VulkanSurvey(VULKAN_CRASHES, problem="it crashed (SIGABRT).")


def check(snapshot: Any = SNAPSHOT, **changes: Any) -> dict[str, Verdict]:
    return {v.subject: v for v in check_gpus(snapshot, replace(SIGHTINGS, **changes))}


def test_a_card_that_all_see() -> None:
    verdicts = check()
    assert verdicts[USED].text == "11.0 GiB of 12.0 GiB VRAM is free."
    assert verdicts["Resizable BAR, Vulkan0"].level == GOOD
    assert unused_gpu(SNAPSHOT, SIGHTINGS) is None
    assert all_used(SIGHTINGS)


@pytest.mark.parametrize(
    ("changes", "text", "advice"),
    [
        ({"bus": (replace(CARD, driver=None),)}, "No driver runs", "nvidia-driver"),
        (
            {"bus": (replace(CARD, driver=None),), "is_windows": True},
            "No driver runs",
            "NVIDIA's site",
        ),
        ({"bus": (replace(RADEON, driver=None),)}, "No driver runs", "mesa-vulkan-drivers"),
        ({"bus": (replace(CARD, driver="vfio-pci"),)}, "virtual machine", "Give it back"),
        ({"vulkan": VulkanSurvey(VULKAN_MISSING)}, "loader is missing", "libvulkan1"),
        (
            {"vulkan": VulkanSurvey(VULKAN_MISSING), "is_windows": True},
            "loader is missing",
            "graphics driver",
        ),
        ({"vulkan": VulkanSurvey(VULKAN_CRASHES)}, "crashes", "Update the graphics driver"),
        ({"vulkan": VulkanSurvey(VULKAN_REFUSES)}, "does not list", "reinstall NVIDIA's"),
        (
            {"vulkan": VulkanSurvey(VULKAN_ANSWERS), "bus": (RADEON,)},
            "does not list",
            "mesa-vulkan-drivers",
        ),
        (
            {"vulkan": VulkanSurvey(VULKAN_ANSWERS), "bus": (replace(CARD, driver="nouveau"),)},
            "nouveau",
            "nvidia-driver",
        ),
        ({"packaged": False, "build": BuildState()}, "This build", "With your GPU"),
        (
            {
                "packaged": False,
                "build": BuildState(gpu_offload=False),
                "vulkan": VulkanSurvey(VULKAN_MISSING),
            },
            "This build",
            "With your GPU",
        ),
        ({"packaged": True}, "does not take it", "too old"),
        ({"wish": "none"}, "GPU interface", "back to auto"),
    ],
)
def test_the_first_thing_in_the_way_is_named(
    changes: dict[str, Any], text: str, advice: str
) -> None:
    seen = replace(SIGHTINGS, **NO_DEVICE, **changes)
    snapshot = replace(SNAPSHOT, gpus=())
    verdict = unused_gpu(snapshot, seen)
    assert verdict is not None and verdict.level == BAD
    assert text in verdict.text and advice in verdict.advice
    assert verdict in check_gpus(snapshot, seen)
    assert not all_used(seen)


def test_a_card_that_only_the_meters_see() -> None:
    """As in a container, where the bus is hidden."""
    build = replace(SIGHTINGS.build, gpu_modules=())
    verdicts = check(UNMATCHED, **NO_DEVICE, bus=(), vulkan=None, packaged=False, build=build)
    verdict = verdicts["NVIDIA GeForce RTX 4070"]
    assert verdict.level == BAD and "With your GPU" in verdict.advice


def test_a_card_is_told_of_once() -> None:
    verdicts = check(UNMATCHED, **NO_DEVICE)
    assert list(verdicts) == ["GeForce RTX 4070"]


def test_no_gpu_at_all() -> None:
    nothing = check(replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=())
    assert nothing["GPU"].level == WARNING
    crashes = check(replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=(), vulkan=CRASHES)["GPU"]
    assert "crashes" in crashes.text and "doctor again" in crashes.advice
    missing = check(
        replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=(), vulkan=VulkanSurvey(VULKAN_MISSING)
    )["GPU"]
    assert "loader" in missing.text and "driver with Vulkan" in missing.advice
    refuses = VulkanSurvey(VULKAN_REFUSES, problem="it finds no driver", drivers=("lvp_icd.json",))
    no_driver = check(replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=(), vulkan=refuses)["GPU"]
    assert "No Vulkan driver starts" in no_driver.text and "anew" in no_driver.advice
    screen = BusGpu("1a03", "ASPEED 2000", "0000:02:00.0", "ast")
    assert list(check(replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=(screen,))) == ["GPU"]
    broken = replace(SIGHTINGS.build, problem="It does not start.")
    assert check(replace(SNAPSHOT, gpus=()), **NO_DEVICE, bus=(), build=broken) == {}


def test_a_second_card_that_is_not_used() -> None:
    verdicts = check(bus=(CARD, replace(CARD, name="GeForce GT 710", pci_address="0000:05:00.0")))
    assert verdicts[USED].level == GOOD
    assert verdicts["GeForce GT 710"].level == WARNING
    other = GpuReading("Radeon RX 7900", "amdgpu")
    assert check(replace(SNAPSHOT, gpus=(READING, other)))["Radeon RX 7900"].level == WARNING


def test_a_processors_own_graphics_beside_a_card_is_no_loss() -> None:
    own = BusGpu(INTEL, "UHD Graphics 770", "0000:00:02.0", "i915")
    assert set(check(bus=(CARD, own))) == {USED, "Resizable BAR, Vulkan0"}


def test_a_gpu_that_is_full_hot_or_throttled() -> None:
    def with_reading(**changes: Any) -> Verdict:
        return check(replace(SNAPSHOT, gpus=(replace(READING, **changes),)))[USED]

    assert "Only 1.0 GiB" in with_reading(free_bytes=GIB).text
    assert "hot: 91" in with_reading(temperature_c=91.0).text
    assert "power limit" in with_reading(throttle_reasons=("power limit",)).text


def test_a_program_that_imitates_a_gpu() -> None:
    name = "llvmpipe (LLVM 15.0.6, 256 bits)"
    software = BackendDevice("Vulkan0", name, "gpu", "Vulkan", 2 * GIB, 2 * GIB)
    snapshot = replace(SNAPSHOT, gpus=())
    assert check(snapshot, devices=(software, CPU), bus=())[f"Vulkan0 ({name})"].level == WARNING
    # The card that it stands in for is not used all the same.
    assert check(snapshot, devices=(software, CPU))["GeForce RTX 4070"].level == BAD


def test_resizable_bar() -> None:
    small = VulkanSurvey(VULKAN_ANSWERS, (replace(LISTED, visible_bytes=246 << 20),))
    off = check(vulkan=small)["Resizable BAR, Vulkan0"]
    assert off.level == WARNING and "246 MiB of 12.0 GiB" in off.text and "BIOS" in off.advice
    by_the_bus = check(vulkan=None, bus=(replace(CARD, visible_bytes=256 << 20),))
    assert by_the_bus["Resizable BAR, Vulkan0"].level == WARNING
    own = replace(GPU, kind="igpu")
    assert "Resizable BAR, Vulkan0" not in check(devices=(own, CPU), vulkan=None)
    unknown = check(vulkan=None, bus=(replace(CARD, visible_bytes=None),))
    assert "Resizable BAR, Vulkan0" not in unknown


def test_first_glance_says_only_whether_a_gpu_is_used() -> None:
    small = VulkanSurvey(VULKAN_ANSWERS, (replace(LISTED, visible_bytes=246 << 20),))
    seen = replace(SIGHTINGS, vulkan=small, is_windows=True)
    (verdict,) = first_glance(SNAPSHOT, seen)
    assert (verdict.level, verdict.subject) == (GOOD, "NVIDIA GeForce RTX 4070")
    (unused,) = first_glance(SNAPSHOT, replace(SIGHTINGS, devices=(CPU,), wish="none"))
    assert (unused.level, unused.subject) == (BAD, "GeForce RTX 4070")


def test_memory_that_windows_moved_away() -> None:
    much = replace(SNAPSHOT, gpus=(replace(READING, shared_bytes=3 * GIB),))
    assert check(much, is_windows=True)["Shared memory, Vulkan0"].level == WARNING
    quiet = check(is_windows=True)["Shared memory, Vulkan0"]
    assert quiet.level == GOOD and "Sysmem Fallback" in quiet.text
    assert "Shared memory, Vulkan0" not in check(much)


def test_cards_are_matched_by_address_and_else_by_maker() -> None:
    assert all_used(replace(SIGHTINGS, devices=(replace(GPU, pci_address=None), CPU)))
    assert not all_used(replace(SIGHTINGS, devices=(replace(GPU, pci_address="0000:09:00.0"),)))
    assert not all_used(replace(SIGHTINGS, bus=(CARD, RADEON)))
    assert CARD.vendor == NVIDIA and CARD.pci_address == PCI
