"""A placement in llama.cpp's own terms.

In: :class:`Placement`. Out: filled fields of ``llama_model_params``. Engine thread.
"""

from __future__ import annotations

import ctypes
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.placement import Placement
from moelauncher.core.translate import tr
from moelauncher.engine.devices import device_handles
from moelauncher.engine.native import Native


class _BufferTypeOverride(ctypes.Structure):
    """``llama_model_tensor_buft_override`` of llama.h, which the bindings do not define."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buft", ctypes.c_void_p))


class NativePlacement:
    """The arrays behind ``llama_model_params``: keep it alive until the load has returned."""

    def __init__(self, native: Native, placement: Placement) -> None:
        """Raises LauncherError when the placement names a GPU that this build does not have."""
        self._native = native
        self._placement = placement
        self._devices = _device_array(native, placement)
        self._patterns = [pattern.encode("utf-8") for pattern in placement.patterns]
        self._overrides = self._override_array()
        self._split = self._split_array()

    def apply(self, params: Any) -> None:
        """Write the placement into ``params`` (a ``llama_model_params``)."""
        lib = self._native.lib
        params.n_gpu_layers = self._placement.n_gpu_layers if self._placement.devices else 0
        params.split_mode = lib.LLAMA_SPLIT_MODE_LAYER
        params.devices = ctypes.cast(self._devices, ctypes.c_void_p)
        if self._overrides is not None:
            params.tensor_buft_overrides = ctypes.cast(self._overrides, ctypes.c_void_p)
        if self._split is not None:
            params.tensor_split = ctypes.cast(self._split, ctypes.POINTER(ctypes.c_float))

    def _override_array(self) -> Any:
        # Without a GPU all is in RAM anyway, and an override would keep the experts out of
        # the CPU's faster repacked buffers.
        if not self._patterns or not self._placement.devices:
            return None
        buffer_type = self._native.ggml_base.ggml_backend_cpu_buffer_type()
        array = (_BufferTypeOverride * (len(self._patterns) + 1))()
        for item, pattern in zip(array, self._patterns, strict=False):
            item.pattern, item.buft = pattern, buffer_type
        return array  # the last entry stays NULL and ends the list

    def _split_array(self) -> Any:
        split = self._placement.tensor_split
        if not split:
            return None
        # llama.cpp reads llama_max_devices() numbers, whatever the number of GPUs.
        array = (ctypes.c_float * max(self._native.lib.llama_max_devices(), len(split)))()
        array[: len(split)] = list(split)
        return array


def _device_array(native: Native, placement: Placement) -> Any:
    """A NULL-ended list of device handles; empty keeps every layer in RAM."""
    handles = device_handles(native)
    array = (ctypes.c_void_p * (len(placement.devices) + 1))()
    for index, device in enumerate(placement.devices):
        if device.name not in handles or device.pretended:
            raise LauncherError(
                tr("The installed llama.cpp build has no device named {name}.").format(
                    name=device.name
                ),
                tr("Plan for the devices of this machine, or install a build for that GPU."),
                tr("Devices of this build: {names}").format(names=", ".join(handles)),
            )
        array[index] = handles[device.name]
    return array
