"""Physical cores of this machine, on each system's own way.

In: nothing. Out: counts for ``llama_context_params.n_threads``. Any thread.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

from moelauncher.core.cpu_cores import LINUX_TOPOLOGY, cores_of_topology, logical_cores

# LOGICAL_PROCESSOR_RELATIONSHIP of winnt.h: one record a physical core.
_RELATION_PROCESSOR_CORE = 0


@cache
def physical_cores() -> int:
    """Physical cores that this process may use; logical ones where the system does not tell."""
    counted: int | None = None
    if sys.platform == "linux":
        counted = cores_of_topology(LINUX_TOPOLOGY, os.sched_getaffinity(0))
    elif sys.platform == "win32":
        counted = _windows_cores()
    return counted or logical_cores()


def _windows_cores() -> int | None:
    kernel: object = getattr(ctypes, "windll").kernel32  # noqa: B009 - absent in other systems
    ask = getattr(kernel, "GetLogicalProcessorInformationEx")  # noqa: B009
    length = ctypes.c_uint32(0)
    ask(_RELATION_PROCESSOR_CORE, None, ctypes.byref(length))
    if not length.value:
        return None
    buffer = ctypes.create_string_buffer(length.value)
    if not ask(_RELATION_PROCESSOR_CORE, buffer, ctypes.byref(length)):
        return None
    return count_core_records(buffer.raw[: length.value])


def count_core_records(records: bytes) -> int | None:
    """Entries in a chain of SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX: (kind, size, data) each."""
    count, offset = 0, 0
    while offset + 8 <= len(records):
        size = int.from_bytes(records[offset + 4 : offset + 8], "little")
        if size < 8:
            return None
        count += int.from_bytes(records[offset : offset + 4], "little") == _RELATION_PROCESSOR_CORE
        offset += size
    return count or None
