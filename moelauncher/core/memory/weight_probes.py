"""Which weights a GPU might refuse, as questions to its driver.

llama.cpp puts a tensor on a layer's GPU only where that GPU can compute with it; else it stays
in main memory (``select_weight_buft`` in ``src/llama-model-loader.cpp``). Refused are tensors
larger than a buffer of the device may be, types that a backend does not know, and Mamba's
scan on most of them. The answer depends on the operation, the type and the shape alone.

In: :class:`ModelFacts`. Out: :class:`WeightProbe` values, each with the tensors that it stands
for. Pure; any thread; computed once a model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.files.per_model import once_per_model
from moelauncher.core.memory.tensor_names import is_input_tensor, is_routed_expert

if TYPE_CHECKING:
    from moelauncher.core.files.gguf_header import TensorInfo
    from moelauncher.core.files.model_facts import ModelFacts

MUL_MAT, MUL_MAT_ID, SSM_CONV, SSM_SCAN = "mul_mat", "mul_mat_id", "ssm_conv", "ssm_scan"

#: Where ``ssm_a`` goes into a scan; the other architectures only multiply by it.
_SCANS = frozenset(
    {
        "falcon-h1",
        "granitehybrid",
        "jamba",
        "mamba",
        "mamba2",
        "nemotron_h",
        "nemotron_h_moe",
        "plamo2",
    }
)


@dataclass(frozen=True)
class WeightProbe:
    """Can a device compute ``operation`` with a weight of this type and shape?

    ``n_used`` are the experts in use (MUL_MAT_ID); ``n_state``, ``n_inner`` and ``n_group``
    the model's sizes for a scan. 0 where they do not matter.
    """

    operation: str
    ggml_type: int
    shape: tuple[int, ...]
    n_used: int = 0
    n_state: int = 0
    n_inner: int = 0
    n_group: int = 0


#: By device: what it cannot compute with.
RefusedWeights = Mapping[str, Collection[WeightProbe]]


@once_per_model
def weight_probes(facts: ModelFacts) -> Mapping[WeightProbe, tuple[str, ...]]:
    """What to ask of a GPU before the model's tensors are counted on it, with their names.

    Norms, biases and other vectors are not in it: every backend adds and multiplies.
    """
    found: dict[WeightProbe, list[str]] = {}
    for tensor in facts.tensors:
        probe = _probe_of(facts, tensor)
        if probe is not None:
            found.setdefault(probe, []).append(tensor.name)
    return {probe: tuple(names) for probe, names in found.items()}


def _probe_of(facts: ModelFacts, tensor: TensorInfo) -> WeightProbe | None:
    name, shape = tensor.name, tensor.shape
    if name.endswith(".ssm_a"):
        return _scan_of(facts, tensor) if facts.arch in _SCANS else None
    if not name.endswith(".weight") or len(shape) < 2 or "norm" in name:
        return None
    if name.endswith((".ssm_conv1d.weight", ".shortconv.conv.weight")):
        return WeightProbe(SSM_CONV, tensor.ggml_type, shape)
    if is_routed_expert(name):
        return WeightProbe(MUL_MAT_ID, tensor.ggml_type, shape, n_used=max(facts.n_expert_used, 1))
    tied = facts.tied_output and name == "token_embd.weight"
    if is_input_tensor(name) and not tied:
        return None
    return WeightProbe(MUL_MAT, tensor.ggml_type, shape)


def _scan_of(facts: ModelFacts, tensor: TensorInfo) -> WeightProbe | None:
    if len(tensor.shape) < 2 or not tensor.shape[1]:
        return None

    def number(key: str) -> int:
        value = facts.metadata.get(f"{facts.arch}.{key}")
        return value if type(value) is int else 0

    return WeightProbe(
        SSM_SCAN,
        tensor.ggml_type,
        tensor.shape,
        n_state=number("ssm.state_size"),
        n_inner=number("ssm.inner_size"),
        n_group=number("ssm.group_count"),
    )
