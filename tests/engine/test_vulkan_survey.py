"""What Vulkan lists without llama.cpp; loaders and drivers that are missing, refuse or crash.

Stand-in loaders are compiled on the spot, so that ctypes' own path runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.program.doctor_facts import (
    NVIDIA,
    VULKAN_ANSWERS,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
)
from moelauncher.engine.child import Child
from moelauncher.engine.vulkan_survey import (
    LOADER,
    driver_names,
    survey_here,
    survey_vulkan,
)

LOADER_SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct { uint32_t api, driver, vendor, device; int32_t type; char name[256]; } head_t;
typedef struct { uint32_t n_types; struct { uint32_t flags, heap; } types[32];
                 uint32_t n_heaps; struct { uint64_t size; uint32_t flags; } heaps[16]; } memory_t;
int vkCreateInstance(const void *info, const void *allocator, void **instance) {
    if (CRASH == 1) abort();
    *instance = (void *)1;
    return CREATE;
}
void vkDestroyInstance(void *instance, const void *allocator) {}
int vkEnumeratePhysicalDevices(void *instance, uint32_t *count, void **devices) {
    if (CRASH == 2) abort();
    if (LIST) return LIST;
    if (devices) devices[0] = (void *)7;
    *count = 1;
    return 0;
}
void vkGetPhysicalDeviceProperties(void *device, head_t *head) {
    head->api = (1u << 22) | (4u << 12) | 303;
    head->driver = (570u << 22) | (86u << 14) | (16u << 6);
    head->vendor = 0x10DE; head->type = 2;
    strcpy(head->name, "NVIDIA GeForce RTX 4070");
}
void vkGetPhysicalDeviceMemoryProperties(void *device, memory_t *memory) {
    memset(memory, 0, sizeof *memory);
    memory->n_types = 3; memory->n_heaps = 3;
    memory->types[0].flags = 1; memory->types[0].heap = 0;
    memory->types[1].flags = 2; memory->types[1].heap = 1;
    memory->types[2].flags = 3; memory->types[2].heap = 2;
    memory->heaps[0].size = 12ull << 30; memory->heaps[0].flags = 1;
    memory->heaps[1].size = 32ull << 30;
    memory->heaps[2].size = 246ull << 20; memory->heaps[2].flags = 1;
}
"""

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="stand-in loaders are compiled for Linux"
)


def make_loader(folder: Path, *, create: int = 0, listing: int = 0, crash: int = 0) -> Path:
    source, target = folder / "loader.c", folder / LOADER
    source.write_text(LOADER_SOURCE, encoding="utf-8")
    defines = [f"-DCREATE={create}", f"-DLIST={listing}", f"-DCRASH={crash}"]
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{LOADER}", *defines]
    subprocess.run([compiler, *flags, "-o", str(target), str(source)], check=True)
    return target


def test_a_card_with_its_driver_and_how_much_of_it_is_visible(tmp_path: Path) -> None:
    answer = survey_here(str(make_loader(tmp_path)))
    survey = survey_vulkan(lambda: answer, lambda: ())
    assert survey.state == VULKAN_ANSWERS and survey.problem == ""
    (gpu,) = survey.gpus
    assert (gpu.name, gpu.vendor, gpu.kind) == ("NVIDIA GeForce RTX 4070", NVIDIA, "discrete")
    assert (gpu.driver_version, gpu.api_version) == ("570.86.16", "1.4.303")
    assert (gpu.total_bytes, gpu.visible_bytes) == (12 << 30, 246 << 20)


def test_a_loader_that_is_missing_is_no_error(tmp_path: Path) -> None:
    answer = survey_here(str(tmp_path / LOADER))
    assert answer["state"] == VULKAN_MISSING and LOADER in answer["problem"]


@pytest.mark.parametrize(
    ("create", "listing", "problem"),
    [(-9, 0, "no driver"), (-3, 0, "-3"), (0, -3, "-3")],
)
def test_a_loader_or_driver_that_refuses(
    tmp_path: Path, create: int, listing: int, problem: str
) -> None:
    answer = survey_here(str(make_loader(tmp_path, create=create, listing=listing)))
    assert answer["state"] == VULKAN_REFUSES
    assert problem in answer["problem"]


@pytest.mark.parametrize("crash", [1, 2])
def test_a_driver_that_crashes_ends_the_child_alone(tmp_path: Path, crash: int) -> None:
    make_loader(tmp_path, crash=crash)
    paths = [str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")]
    child = Child(environment={"LD_LIBRARY_PATH": os.pathsep.join(p for p in paths if p)})
    try:
        survey = survey_vulkan(lambda: child.request("vulkan"), lambda: ("broken_icd.json",))
        assert survey.state == VULKAN_CRASHES
        assert survey.problem == "it crashed (SIGABRT)."
        assert survey.drivers == ("broken_icd.json",)
        assert child.request("devices")  # the next question is answered by another child
    finally:
        child.close()


def test_drivers_by_their_manifests(tmp_path: Path) -> None:
    good = {"ICD": {"library_path": "libvulkan_radeon.so"}}
    (tmp_path / "radeon_icd.json").write_text(json.dumps(good), encoding="utf-8")
    (tmp_path / "notes.json").write_text("[]", encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    folders = (tmp_path, tmp_path / "absent")
    assert driver_names({}, folders) == ("radeon_icd.json",)
    named = {"VK_DRIVER_FILES": f"/a/one.json{os.pathsep}/b/two.json"}
    assert driver_names(named, folders) == ("one.json", "two.json")
