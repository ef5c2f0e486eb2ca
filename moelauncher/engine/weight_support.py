"""Which weights each GPU can compute with, asked of its backend as llama.cpp asks it.

In: a model, device names. Out, on the parent's side (:func:`refused_weights`): the probes of
:mod:`moelauncher.core.memory.weight_probes` that each refuses. The asking itself
(:func:`answer_probes`) runs in the child process only: it builds small graphs of ggml's, and
they abort on shapes that cannot be.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.weight_probes import (
    MUL_MAT,
    MUL_MAT_ID,
    SSM_CONV,
    SSM_SCAN,
    WeightProbe,
    weight_probes,
)
from moelauncher.engine.child import Child
from moelauncher.engine.devices import device_handles
from moelauncher.engine.native import Native, load_native

_F32, _I32 = 0, 26  # ggml_type
#: The prompt, and the sequences of a scan, for which llama.cpp itself asks.
_N_TOKENS, _N_SEQUENCES = 512, 3
_CONTEXT_BYTES = 64 << 10

_lock = threading.Lock()
#: By child: (device name, probe) to whether it can.
_known: WeakKeyDictionary[Child, dict[tuple[str, WeightProbe], bool]] = WeakKeyDictionary()


def refused_weights(
    child: Child, facts: ModelFacts, devices: Sequence[str]
) -> dict[str, frozenset[WeightProbe]]:
    """By GPU: what it cannot compute with of this model. A GPU that takes all is left out.

    Asked once for each kind of tensor, and remembered as long as ``child`` lives. Raises
    LauncherError where the child could not be asked. Blocks; any thread.
    """
    refused: dict[str, frozenset[WeightProbe]] = {}
    for device in devices:
        answers = _answers(child, device, list(weight_probes(facts)))
        if not all(answers.values()):
            refused[device] = frozenset(probe for probe, can in answers.items() if not can)
    return refused


def _answers(
    child: Child, device: str, probes: Sequence[WeightProbe]
) -> Mapping[WeightProbe, bool]:
    with _lock:
        known = _known.setdefault(child, {})
        missing = [probe for probe in probes if (device, probe) not in known]
    if missing:
        asked = {"device": device, "probes": [asdict(probe) for probe in missing]}
        answers = child.request("weight_support", asked)
        with _lock:
            known.update(
                ((device, probe), can) for probe, can in zip(missing, answers, strict=True)
            )
    return {probe: known[device, probe] for probe in probes}


def answer_probes(parameters: Mapping[str, Any]) -> list[bool]:
    """The child's side: one answer a probe, in their order."""
    native = load_native()
    handle = device_handles(native).get(parameters["device"])
    if handle is None:
        return [True] * len(parameters["probes"])
    asker = _Asker(native, handle)
    return [
        asker.can(WeightProbe(**{**probe, "shape": tuple(probe["shape"])}))
        for probe in parameters["probes"]
    ]


class _InitParams(ctypes.Structure):
    """``ggml_init_params`` of ggml.h."""

    _fields_ = (
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    )


class _TensorHead(ctypes.Structure):
    """The first members of ``ggml_tensor``."""

    _fields_ = (("type", ctypes.c_int), ("buffer", ctypes.c_void_p))


class _Asker:
    """Builds the operation that llama.cpp would test, and asks the device for it."""

    def __init__(self, native: Native, device: int) -> None:
        self._ggml = native.ggml_base
        self._device = ctypes.c_void_p(device)
        self._context: ctypes.c_void_p = ctypes.c_void_p(None)
        pointer = ctypes.c_void_p
        for name, arguments in (
            ("ggml_init", [_InitParams]),
            ("ggml_new_tensor", [pointer, ctypes.c_int, ctypes.c_int, pointer]),
            ("ggml_mul_mat", [pointer] * 3),
            ("ggml_mul_mat_id", [pointer] * 4),
            ("ggml_ssm_conv", [pointer] * 3),
            ("ggml_ssm_scan", [*[pointer] * 8, ctypes.c_int64]),
            ("ggml_backend_dev_buffer_type", [pointer]),
            ("ggml_backend_buft_alloc_buffer", [pointer, ctypes.c_size_t]),
        ):
            function = getattr(self._ggml, name)
            function.restype, function.argtypes = pointer, arguments
        for name in ("ggml_free", "ggml_backend_buffer_free"):
            function = getattr(self._ggml, name)
            function.restype, function.argtypes = None, [pointer]
        self._ggml.ggml_backend_dev_supports_op.restype = ctypes.c_bool
        self._ggml.ggml_backend_dev_supports_op.argtypes = [pointer, pointer]

    def can(self, probe: WeightProbe) -> bool:
        """Whether the device computes it, with the weight in its own memory."""
        ggml = self._ggml
        self._context = ggml.ggml_init(_InitParams(_CONTEXT_BYTES, None, True))
        # Without a byte: only its kind is looked at.
        buffer = ggml.ggml_backend_buft_alloc_buffer(
            ggml.ggml_backend_dev_buffer_type(self._device), 0
        )
        try:
            weight = self._tensor(probe.ggml_type, *probe.shape)
            ctypes.cast(weight, ctypes.POINTER(_TensorHead)).contents.buffer = buffer
            operation = self._operation(probe, weight)
            return bool(ggml.ggml_backend_dev_supports_op(self._device, operation))
        finally:
            ggml.ggml_backend_buffer_free(buffer)
            ggml.ggml_free(self._context)

    def _tensor(self, ggml_type: int, *shape: int) -> Any:
        lengths = (ctypes.c_int64 * len(shape))(*shape)
        return self._ggml.ggml_new_tensor(self._context, ggml_type, len(shape), lengths)

    def _operation(self, probe: WeightProbe, weight: Any) -> Any:
        ggml, context = self._ggml, self._context
        first, second, *more = probe.shape
        if probe.operation == MUL_MAT:
            return ggml.ggml_mul_mat(context, weight, self._tensor(_F32, first, _N_TOKENS, *more))
        if probe.operation == MUL_MAT_ID:
            values = self._tensor(_F32, first, probe.n_used, _N_TOKENS)
            chosen = self._tensor(_I32, probe.n_used, _N_TOKENS)
            return ggml.ggml_mul_mat_id(context, weight, values, chosen)
        if probe.operation == SSM_CONV:
            values = self._tensor(_F32, first - 1 + _N_TOKENS, second, _N_SEQUENCES)
            return ggml.ggml_ssm_conv(context, values, weight)
        assert probe.operation == SSM_SCAN
        return self._scan(probe, weight)

    def _scan(self, probe: WeightProbe, weight: Any) -> Any:
        first, n_head = probe.shape[:2]
        n_state = probe.n_state if first == 1 else first
        head = probe.n_inner // n_head
        group = probe.n_group or 1
        tokens = (_N_TOKENS, _N_SEQUENCES)
        return self._ggml.ggml_ssm_scan(
            self._context,
            self._tensor(_F32, n_state, head, n_head, _N_SEQUENCES),
            self._tensor(_F32, head, n_head, *tokens),
            self._tensor(_F32, n_head, *tokens),
            weight,
            self._tensor(_F32, n_state, group, *tokens),
            self._tensor(_F32, n_state, group, *tokens),
            self._tensor(_I32, _N_SEQUENCES),
            1,
        )
