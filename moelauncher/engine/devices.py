"""What the loaded llama.cpp build can compute on.

In: nothing. Out: :class:`BackendDevice` values, GPUs and CPU alike, in llama.cpp's own
order. Any thread; each call asks the drivers anew (memory changes).
"""

from __future__ import annotations

import ctypes

from moelauncher.core.machine import BackendDevice
from moelauncher.engine.native import Native, load_native

# ggml_backend_dev_type of ggml-backend.h.
_KINDS = {0: "cpu", 1: "gpu", 2: "igpu", 3: "accel", 4: "meta"}


class _DeviceCaps(ctypes.Structure):
    _fields_ = [
        ("is_async", ctypes.c_bool),
        ("host_buffer", ctypes.c_bool),
        ("buffer_from_host_ptr", ctypes.c_bool),
        ("events", ctypes.c_bool),
        ("mmap_support", ctypes.c_bool),
        # Room for flags that later versions add behind: the library writes the whole struct.
        ("spare", ctypes.c_bool * 59),
    ]


class _DeviceProps(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("memory_free", ctypes.c_size_t),
        ("memory_total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("device_id", ctypes.c_char_p),
        ("caps", _DeviceCaps),
    ]


def list_devices() -> tuple[BackendDevice, ...]:
    """All devices of the build. Raises LauncherError when llama.cpp cannot be loaded."""
    native = load_native()
    count = native.ggml.ggml_backend_dev_count()
    return tuple(_describe(native, native.ggml.ggml_backend_dev_get(i)) for i in range(count))


def device_handles(native: Native) -> dict[str, int]:
    """Device name to its native handle, for ``llama_model_params.devices``."""
    handles: dict[str, int] = {}
    for index in range(native.ggml.ggml_backend_dev_count()):
        handle = native.ggml.ggml_backend_dev_get(index)
        handles[_describe(native, handle).name] = handle
    return handles


def _describe(native: Native, handle: int) -> BackendDevice:
    props = _DeviceProps()
    native.ggml_base.ggml_backend_dev_get_props(handle, ctypes.byref(props))
    registry = native.ggml_base.ggml_backend_dev_backend_reg(handle)
    backend = native.ggml_base.ggml_backend_reg_name(registry) or b""
    kind = _KINDS.get(props.type, "accel")
    known = props.memory_total > 0  # a backend that cannot ask its driver says 0 of 0
    return BackendDevice(
        name=_text(props.name),
        description=_text(props.description),
        kind=kind,
        backend=_text(backend),
        free_bytes=props.memory_free if known else None,
        total_bytes=props.memory_total if known else None,
        pci_address=_text(props.device_id).lower() or None,
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", errors="replace").strip()
