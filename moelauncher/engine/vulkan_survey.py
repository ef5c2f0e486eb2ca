"""Which GPUs Vulkan itself lists, without llama.cpp: tells a broken driver from a missing one.

In: nothing. Out: :class:`VulkanSurvey`. :func:`survey_here` runs in the child process, since a
driver may end it; :func:`survey_vulkan` asks the child and knows what its end means.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelauncher.core.errors import HelperCrashed, LauncherError
from moelauncher.core.program.doctor_facts import (
    INTEL,
    NVIDIA,
    VULKAN_ANSWERS,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
    VulkanGpu,
    VulkanSurvey,
    vendor_name,
)
from moelauncher.core.translate import tr
from moelauncher.engine.backend_modules import loader_words

LOADER = "vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1"
#: Where drivers announce themselves on Linux.
DRIVER_FOLDERS = (
    Path("/usr/share/vulkan/icd.d"),
    Path("/usr/local/share/vulkan/icd.d"),
    Path("/etc/vulkan/icd.d"),
)

# vulkan_core.h
_APPLICATION_INFO, _INSTANCE_CREATE_INFO = 0, 1
_INCOMPATIBLE_DRIVER = -9
_KINDS = {1: "integrated", 2: "discrete", 3: "virtual", 4: "software"}
_DEVICE_LOCAL, _HOST_VISIBLE = 1, 2
_API_1_1 = (1 << 22) | (1 << 12)


class _ApplicationInfo(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("application", ctypes.c_char_p),
        ("application_version", ctypes.c_uint32),
        ("engine", ctypes.c_char_p),
        ("engine_version", ctypes.c_uint32),
        ("api_version", ctypes.c_uint32),
    ]


class _InstanceCreateInfo(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application_info", ctypes.POINTER(_ApplicationInfo)),
        ("n_layers", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("n_extensions", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    ]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("api_version", ctypes.c_uint32),
        ("driver_version", ctypes.c_uint32),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("device_type", ctypes.c_int),
        ("device_name", ctypes.c_char * 256),
        # Identity of its cache, limits and sparse properties: not looked at.
        ("rest", ctypes.c_uint8 * 1024),
    ]


class _MemoryType(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint32), ("heap", ctypes.c_uint32)]


class _MemoryHeap(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("flags", ctypes.c_uint32)]


class _MemoryProperties(ctypes.Structure):
    _fields_ = [
        ("n_types", ctypes.c_uint32),
        ("types", _MemoryType * 32),
        ("n_heaps", ctypes.c_uint32),
        ("heaps", _MemoryHeap * 16),
    ]


def survey_vulkan(
    ask: Callable[[], Any], drivers: Callable[[], tuple[str, ...]] | None = None
) -> VulkanSurvey:
    """What the child says to ``ask``; where it ends over the question, a driver crashes."""
    names = (drivers or driver_names)()
    try:
        answer = ask()
    except HelperCrashed as error:
        return VulkanSurvey(VULKAN_CRASHES, problem=error.reason, drivers=names)
    except LauncherError as error:
        return VulkanSurvey(VULKAN_CRASHES, problem=error.message, drivers=names)
    gpus = tuple(VulkanGpu(**gpu) for gpu in answer["gpus"])
    return VulkanSurvey(answer["state"], gpus, answer["problem"], names)


def driver_names(
    environ: Mapping[str, str] = os.environ, folders: Iterable[Path] = DRIVER_FOLDERS
) -> tuple[str, ...]:
    """The manifests of the drivers that are installed, by file name; empty on Windows."""
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        if environ.get(variable):
            return tuple(Path(name).name for name in environ[variable].split(os.pathsep) if name)
    names = set()
    for folder in folders:
        if folder.is_dir():
            names |= {file.name for file in folder.glob("*.json") if _is_manifest(file)}
    return tuple(sorted(names))


def _is_manifest(file: Path) -> bool:
    try:
        return "ICD" in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


# In the child


def survey_here(loader: str = LOADER) -> dict[str, Any]:
    """The survey as values for JSON. May end the process."""
    try:
        vulkan = _open(loader)
    except OSError as error:
        return _answer(VULKAN_MISSING, problem=loader_words(error))
    instance = ctypes.c_void_p()
    application = _ApplicationInfo(_APPLICATION_INFO, None, b"moelauncher", 0, b"", 0, _API_1_1)
    create = _InstanceCreateInfo(
        _INSTANCE_CREATE_INFO, None, 0, ctypes.pointer(application), 0, None, 0, None
    )
    result = vulkan.vkCreateInstance(ctypes.byref(create), None, ctypes.byref(instance))
    if result:
        problem = tr("it finds no driver") if result == _INCOMPATIBLE_DRIVER else f"{result}"
        return _answer(VULKAN_REFUSES, problem=problem)
    try:
        handles = _device_handles(vulkan, instance)
        gpus = [_describe(vulkan, ctypes.c_void_p(handle)) for handle in handles]
    except OSError as error:
        return _answer(VULKAN_REFUSES, problem=str(error))
    finally:
        vulkan.vkDestroyInstance(instance, None)
    return _answer(VULKAN_ANSWERS, gpus)


def _answer(state: str, gpus: Iterable[VulkanGpu] = (), problem: str = "") -> dict[str, Any]:
    return {"state": state, "gpus": [asdict(gpu) for gpu in gpus], "problem": problem}


def _open(loader: str) -> Any:
    if sys.platform == "win32":
        search_system32 = 0x0800
        return ctypes.CDLL(loader, winmode=search_system32)
    return ctypes.CDLL(loader)


def _device_handles(vulkan: Any, instance: ctypes.c_void_p) -> list[int]:
    count = ctypes.c_uint32()
    result = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    if result < 0:
        raise OSError(tr("its driver gives no list of GPUs ({code})").format(code=result))
    handles = (ctypes.c_void_p * max(count.value, 1))()
    result = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    if result < 0:
        raise OSError(tr("its driver gives no list of GPUs ({code})").format(code=result))
    return [handle for handle in handles[: count.value] if handle]


def _describe(vulkan: Any, handle: ctypes.c_void_p) -> VulkanGpu:
    properties, memory = _Properties(), _MemoryProperties()
    vulkan.vkGetPhysicalDeviceProperties(handle, ctypes.byref(properties))
    vulkan.vkGetPhysicalDeviceMemoryProperties(handle, ctypes.byref(memory))
    heaps = memory.heaps[: memory.n_heaps]
    both = _DEVICE_LOCAL | _HOST_VISIBLE
    visible = {kind.heap for kind in memory.types[: memory.n_types] if kind.flags & both == both}
    local = [heap.size for heap in heaps if heap.flags & _DEVICE_LOCAL]
    vendor = vendor_name(properties.vendor_id)
    return VulkanGpu(
        name=properties.device_name.decode("utf-8", errors="replace").strip(),
        vendor=vendor,
        kind=_KINDS.get(properties.device_type, "other"),
        driver_version=_driver_version(vendor, properties.driver_version),
        api_version=_version(properties.api_version),
        total_bytes=max(local, default=0) or None,
        visible_bytes=max((heaps[at].size for at in visible if at < len(heaps)), default=0) or None,
    )


def _version(number: int) -> str:
    return f"{(number >> 22) & 0x7F}.{(number >> 12) & 0x3FF}.{number & 0xFFF}"


def _driver_version(vendor: str, number: int) -> str:
    """Each maker packs its numbers in its own way."""
    if vendor == NVIDIA:
        return f"{number >> 22}.{(number >> 14) & 0xFF}.{(number >> 6) & 0xFF:02d}"
    if vendor == INTEL and sys.platform == "win32":
        return f"{number >> 14}.{number & 0x3FFF}"
    return _version(number)
