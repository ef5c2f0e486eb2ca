"""How fast a device streams weights: matrices times a vector, as for one token, for a second.

In: device names. Out: bytes a second of each. The work is done in the child process, through
ggml itself, so that it measures what a model will see: same kernels, same threads, same
driver. It holds at most a quarter of the device's free memory meanwhile.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.files.ggml_types import GGML_TYPES
from moelauncher.core.memory.placement import RAM
from moelauncher.core.speed.device_bandwidth import PROBE_TYPE
from moelauncher.core.translate import tr
from moelauncher.engine.child import Child
from moelauncher.engine.cpu_threads import physical_cores
from moelauncher.engine.devices import list_devices
from moelauncher.engine.native import Native, load_native

#: So long one device is measured, after a first pass that does not count.
_MEASURE_S = 0.8
#: One pass over the memory takes so long at most.
_PASS_S = 0.2
_ANSWER_WITHIN_S = 30.0
_ROW = 4096
_PROBE = GGML_TYPES[PROBE_TYPE]
_MATRIX_BYTES = _ROW * _ROW // _PROBE.block_size * _PROBE.block_bytes
#: Larger than any cache, small enough for a machine that is nearly full.
_MOST_BYTES = {"gpu": 1 << 30, "igpu": 512 << 20, "cpu": 512 << 20}
_SHARE_OF_FREE = 4
_FILL = 0x11  # a small finite number in every type
_GRAPH_ROOM = 1 << 20


def measure_bandwidths(
    child: Child, names: Sequence[str], *, cancelled: Callable[[], bool] = lambda: False
) -> dict[str, float]:
    """Bytes a second of each named device (llama.cpp's names, RAM for RAM).

    One that cannot be measured is missing. About a second each; blocks. Raises Cancelled.
    """
    found = {}
    for name in names:
        try:
            answer = child.request(
                "bandwidth", {"device": name}, cancelled=cancelled, timeout_s=_ANSWER_WITHIN_S
            )
        except Cancelled:
            raise
        except LauncherError:
            continue  # a driver that fails here fails at the load too, and says so there
        if type(answer) is float and answer > 0:
            found[name] = answer
    return found


def bandwidth(parameters: Mapping[str, Any]) -> float:
    """In the child: bytes a second of one device."""
    native = load_native()
    wanted = str(parameters["device"])
    for index, device in enumerate(list_devices()):
        if device.name == wanted or (wanted == RAM and device.kind == "cpu"):
            handle = native.ggml.ggml_backend_dev_get(index)
            most = _MOST_BYTES.get(device.kind, _MOST_BYTES["cpu"])
            if device.free_bytes:
                most = min(most, device.free_bytes // _SHARE_OF_FREE)
            return _streamed(native, handle, most)
    raise LauncherError(tr("There is no device {name}.").format(name=wanted))


class _InitParams(ctypes.Structure):
    """ggml_init_params of ggml.h."""

    _fields_ = [
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    ]


def _streamed(native: Native, device: int, most_bytes: int) -> float:
    """A short look first: a slow device is not kept busy for minutes."""
    first = _pass_over(native, device, 1, 0.0)
    enough = min(most_bytes, int(first * _PASS_S))
    return _pass_over(native, device, max(1, min(enough // _MATRIX_BYTES, 60)), _MEASURE_S)


def _pass_over(native: Native, device: int, count: int, measure_s: float) -> float:
    """Bytes a second over ``count`` matrices."""
    base = _declared(native.ggml_base)
    context = base.ggml_init(_InitParams(_GRAPH_ROOM, None, True))
    backend = base.ggml_backend_dev_init(device, None)
    if not context or not backend:
        raise LauncherError(tr("The device could not be opened."))
    buffer = None
    try:
        _use_all_cores(base, device, backend)
        graph = base.ggml_new_graph(context)
        vector = base.ggml_new_tensor_2d(context, 0, _ROW, 1)  # 0: F32
        for _ in range(count):
            matrix = base.ggml_new_tensor_2d(context, PROBE_TYPE, _ROW, _ROW)
            product = base.ggml_mul_mat(context, matrix, vector)
            if not base.ggml_backend_dev_supports_op(device, product):
                raise LauncherError(tr("The device cannot multiply matrices of this type."))
            base.ggml_build_forward_expand(graph, product)
        buffer = base.ggml_backend_alloc_ctx_tensors(context, backend)
        if not buffer:
            raise LauncherError(tr("The device has too little free memory to be measured."))
        base.ggml_backend_buffer_clear(buffer, _FILL)
        return _MATRIX_BYTES * count / _shortest_pass_s(base, backend, graph, measure_s)
    finally:
        if buffer:
            base.ggml_backend_buffer_free(buffer)
        base.ggml_backend_free(backend)
        base.ggml_free(context)


def _shortest_pass_s(base: Any, backend: int, graph: int, measure_s: float) -> float:
    """Time of the least disturbed pass over all matrices; the first does not count."""
    passes: list[float] = []
    until_s = 0.0
    while len(passes) < 2 or time.perf_counter() < until_s:
        began_s = time.perf_counter()
        if base.ggml_backend_graph_compute(backend, graph) != 0:
            raise LauncherError(tr("The device failed while it was measured."))
        base.ggml_backend_synchronize(backend)
        now_s = time.perf_counter()
        passes.append(now_s - began_s)
        if len(passes) == 1:
            until_s = now_s + measure_s
    return max(min(passes[1:]), 1e-9)


def _use_all_cores(base: Any, device: int, backend: int) -> None:
    """Only processors have threads to set."""
    registry = base.ggml_backend_dev_backend_reg(device)
    found = base.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_set_n_threads")
    if found:
        set_threads = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)(found)
        set_threads(backend, default_threads(physical_cores()))


def _declared(base: Any) -> Any:
    pointer = ctypes.c_void_p
    functions: dict[str, tuple[Any, list[Any]]] = {
        "ggml_init": (pointer, [_InitParams]),
        "ggml_free": (None, [pointer]),
        "ggml_new_graph": (pointer, [pointer]),
        "ggml_new_tensor_2d": (pointer, [pointer, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]),
        "ggml_mul_mat": (pointer, [pointer, pointer, pointer]),
        "ggml_build_forward_expand": (None, [pointer, pointer]),
        "ggml_backend_dev_init": (pointer, [pointer, ctypes.c_char_p]),
        "ggml_backend_dev_supports_op": (ctypes.c_bool, [pointer, pointer]),
        "ggml_backend_reg_get_proc_address": (pointer, [pointer, ctypes.c_char_p]),
        "ggml_backend_alloc_ctx_tensors": (pointer, [pointer, pointer]),
        "ggml_backend_buffer_clear": (None, [pointer, ctypes.c_uint8]),
        "ggml_backend_buffer_free": (None, [pointer]),
        "ggml_backend_graph_compute": (ctypes.c_int, [pointer, pointer]),
        "ggml_backend_synchronize": (None, [pointer]),
        "ggml_backend_free": (None, [pointer]),
    }
    for name, (result, arguments) in functions.items():
        function = getattr(base, name)
        function.restype, function.argtypes = result, arguments
    return base
