"""What a GPU backend adds to the bytes of a tensor.

CUDA and HIP round the rows of quantised tensors up to 512 values, once a tensor
(``ggml_backend_cuda_buffer_type_get_alloc_size`` in ``ggml/src/ggml-cuda/ggml-cuda.cu``,
``MATRIX_ROW_PADDING``), and align each tensor to 128 bytes. It is little (0.02 MiB on
gpt-oss-20b), yet a forecast that equals the log must count it. The other backends take the
bytes as they are, but for alignment below a KiB.

In: :class:`ModelFacts`. Out: extra bytes per block and kind. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.files.per_model import once_per_model
from moelauncher.core.memory.tensor_names import block_of, is_input_tensor, is_routed_expert

if TYPE_CHECKING:
    from moelauncher.core.files.gguf_header import TensorInfo
    from moelauncher.core.files.model_facts import ModelFacts

ROW_VALUES = 512
ALIGNMENT_BYTES = 128

#: ggml's types that are not quantised: F32, F16, I8..I64, F64, BF16.
_PLAIN_TYPES = frozenset({0, 1, 24, 25, 26, 27, 28, 30})


@dataclass(frozen=True)
class RowPadding:
    """Extra bytes on a GPU of CUDA or HIP: per block, and of the output layer."""

    dense: tuple[int, ...]
    experts: tuple[int, ...]
    output: int


def pads_rows(device_name: str) -> bool:
    """Whether llama.cpp's device of that name rounds rows up."""
    return device_name.startswith(("CUDA", "ROCm", "MUSA"))


def padding_bytes(tensor: TensorInfo) -> int:
    """What one tensor takes beyond its own bytes."""
    size = tensor.n_bytes
    rest = tensor.shape[0] % ROW_VALUES if tensor.shape else 0
    if rest and tensor.ggml_type not in _PLAIN_TYPES and tensor.n_elements:
        size += (ROW_VALUES - rest) * tensor.n_bytes // tensor.n_elements
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES - tensor.n_bytes


@once_per_model
def row_padding(facts: ModelFacts) -> RowPadding:
    """The sums for one model."""
    dense = [0] * facts.n_layer_all
    experts = [0] * facts.n_layer_all
    output = 0
    for tensor in facts.tensors:
        block = block_of(tensor.name)
        extra = padding_bytes(tensor)
        if block is None:
            tied = facts.tied_output and tensor.name == "token_embd.weight"
            if tied or not is_input_tensor(tensor.name):
                output += extra
        elif block < facts.n_layer_all:
            (experts if is_routed_expert(tensor.name) else dense)[block] += extra
    return RowPadding(tuple(dense), tuple(experts), output)
