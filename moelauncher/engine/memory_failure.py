"""Which device refused how much, read from llama.cpp's log of a load that failed.

In: the log lines of the load. Out: :class:`MemoryShortage`, or None where memory was not
the reason. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from moelauncher.core.memory.load_comparison import buffer_device
from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.memory.placement import RAM

_MIB = 1 << 20

#: alloc_tensor_range and ggml_gallocr_reserve: the buffer type's name, and bytes.
_BUFFER = re.compile(r"failed to allocate (\S+) buffer of size (\d+)")
_OUTPUT = re.compile(r"failed to allocate output buffer of size (\d+(?:\.\d+)?) MiB")
_NAMED = re.compile(r"unable to allocate (\S+) buffer")
#: The CUDA backend (HIP and MUSA too), which may be all that is said.
_CUDA = re.compile(
    r"allocating (\d+(?:\.\d+)?) MiB on device (\d+): (?:cuda|hip|musa)Malloc failed"
)
_VULKAN = re.compile(r"Device memory allocation of size (\d+) failed")

_SPEAKS_OF_MEMORY = (
    "out of memory",
    "outofdevicememory",
    "outofhostmemory",
    "failed to allocate",
    "unable to allocate",
    "cannot allocate",
    "bad_alloc",
)
_PARTS = (
    ("buffer for kv cache", "kv"),
    ("buffer for rs cache", "recurrent"),
    ("compressor state", "recurrent"),
    ("compute buffers", "compute"),
    ("compute pp buffers", "compute"),
    ("compute tg buffers", "compute"),
    ("gallocr", "compute"),
    ("output buffer", "compute"),
    ("load_tensors", "weights"),
    ("error loading model", "weights"),
)


def speaks_of_memory(lines: Sequence[tuple[str, str]]) -> bool:
    """Whether an error or a warning says that memory ran out."""
    text = "\n".join(text for level, text in lines if level in ("error", "warning")).lower()
    return any(words in text for words in _SPEAKS_OF_MEMORY)


def memory_shortage(
    lines: Sequence[tuple[str, str]], gpu_names: Collection[str]
) -> MemoryShortage | None:
    """What was refused. ``gpu_names``: the placement's GPUs, by llama.cpp's names."""
    if not speaks_of_memory(lines):
        return None
    complaints = [text for level, text in lines if level in ("error", "warning")]
    device, asked = _refused(complaints, gpu_names)
    return MemoryShortage(device, asked, _part(complaints))


def _refused(complaints: Sequence[str], gpu_names: Collection[str]) -> tuple[str, int | None]:
    """Device and bytes. The last refusal counts: smaller tries may have come before it."""
    only_gpu = next(iter(gpu_names)) if len(gpu_names) == 1 else None
    for text in reversed(complaints):
        if match := _OUTPUT.search(text):
            return RAM, round(float(match[1]) * _MIB)
        if match := _BUFFER.search(text):
            return buffer_device(match[1], gpu_names), int(match[2])
        if match := _CUDA.search(text):
            return _numbered(int(match[2]), gpu_names), round(float(match[1]) * _MIB)
        if (match := _VULKAN.search(text)) and only_gpu is not None:
            return only_gpu, int(match[1])
    for text in reversed(complaints):
        if match := _NAMED.search(text):
            return buffer_device(match[1], gpu_names), None
    return RAM, None


def _numbered(number: int, gpu_names: Collection[str]) -> str:
    """The CUDA backend's device of that number: its name ends in it."""
    named = (name for name in gpu_names if re.fullmatch(rf"[A-Za-z]+{number}", name))
    return next(named, f"CUDA{number}")


def _part(complaints: Sequence[str]) -> str:
    text = "\n".join(complaints).lower()
    return next((part for words, part in _PARTS if words in text), "")
