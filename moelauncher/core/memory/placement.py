"""A placement: which layers' experts stay on the CPU, and on which device every layer is.

In: a model's layers and tensors. Out: :class:`Placement`, and the device of each. Pure.

The rules are llama.cpp's own, so that the plan is what a load then does:

* layer to device: ``llama_model_base::load_tensors`` in ``src/llama-model.cpp``
  (``get_layer_buft_list``), which computes in 32-bit floats, as is done here;
* input and output tensors: the layer column of ``LLM_TENSOR_INFOS`` in ``src/llama-arch.cpp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.memory.tensor_names import block_of, is_input_tensor, is_routed_expert

if TYPE_CHECKING:
    from moelauncher.core.files.gguf_header import TensorInfo
    from moelauncher.core.files.model_facts import ModelFacts

#: Index of main memory where a device is expected.
MAIN_MEMORY = -1
#: Main memory's name wherever devices are named.
RAM = "RAM"

#: Tensors without a block number that llama.cpp allocates with block 0 all the same.
_FIRST_BLOCK_TENSORS = (
    "token_embd_norm.",
    "per_layer_model_proj.",
    "per_layer_proj_norm.",
    "rope_freqs.",
    "rope_factors_",
    "conv1d.",
    "hrm.z_l_init",
    "nextn.pre_projection.",
)


@dataclass(frozen=True)
class PlacementDevice:
    """A GPU to place on: real (llama.cpp's device name) or pretended (the user's name)."""

    name: str
    free_bytes: int | None
    total_bytes: int | None = None
    pretended: bool = False
    #: An integrated GPU: its memory is main memory.
    shares_ram: bool = False


@dataclass(frozen=True)
class Placement:
    """Where a model goes. Devices are indices into ``devices``; -1 is main memory."""

    cpu_moe: int  # slider stop, 0..of
    of: int  # number of expert layers
    which: str  # "first" | "last": which expert layers go to the CPU
    devices: tuple[PlacementDevice, ...]  # the GPUs, none on a machine without one
    cpu_expert_layers: tuple[int, ...]  # block indices
    n_gpu_layers: int  # llama.cpp's -ngl; n_layer_all + 1 means everything
    layer_devices: tuple[int, ...]  # length n_layer_all + 1; the last one is the output layer
    tensor_split: tuple[float, ...]  # one a GPU; empty with no or one GPU
    patterns: tuple[str, ...]  # tensor_buft_overrides patterns, all to the CPU buffer

    @property
    def ram_layers(self) -> int:
        """How many blocks lie in main memory whole, attention and all."""
        return self.layer_devices[:-1].count(MAIN_MEMORY)


def same_place(one: Placement, other: Placement) -> bool:
    """Whether both put every tensor on the same device.

    What is free there does not matter, nor how the slider stood: without a GPU all its stops
    are the same place.
    """
    return _where(one) == _where(other)


def _where(placement: Placement) -> tuple[object, ...]:
    names = tuple(device.name for device in placement.devices)
    return names, placement.layer_devices, placement.patterns


def expert_stops(facts: ModelFacts) -> tuple[int, ...]:
    """Block indices that the slider can move; none for dense and for unplaceable models."""
    return () if facts.unplaceable_experts else facts.expert_layers


def blocks_at_stop(facts: ModelFacts, stop: int, which: str) -> tuple[int, ...]:
    """The blocks whose experts are on the CPU there; a stop beyond the last one is the last."""
    stops = expert_stops(facts)
    return stops[max(len(stops) - stop, 0) :] if which == "last" else stops[:stop]


def layer_devices(
    n_layer_all: int,
    n_gpu_layers: int,
    n_gpus: int,
    split: Sequence[float],
) -> tuple[int, ...]:
    """Device of each block and, last, of the output layer, by llama.cpp's own rule.

    ``split`` holds one weight a GPU (any scale); without one, or all zero, the GPUs count
    alike. All sums and quotients are 32-bit floats, as in ``load_tensors``: a boundary may
    depend on it.
    """
    if n_gpus == 0:
        return (MAIN_MEMORY,) * (n_layer_all + 1)
    # Here and not above: without a GPU nothing needs it, and it would delay the first paint.
    import numpy as np

    weights = np.asarray(split if any(split) else [1.0] * n_gpus, dtype=np.float32)
    ends = np.cumsum(weights, dtype=np.float32)
    ends = ends / ends[-1]
    start = max(n_layer_all + 1 - n_gpu_layers, 0)
    active = min(n_gpu_layers, n_layer_all + 1)
    if active <= 0:
        return (MAIN_MEMORY,) * (n_layer_all + 1)
    shares = np.arange(active, dtype=np.float32) / np.float32(active)
    # The last end is 1 and every share is below it, so the index is always a device.
    on_gpu = np.searchsorted(ends, shares, side="right")
    return (MAIN_MEMORY,) * start + tuple(int(device) for device in on_gpu)


def tensor_device(placement: Placement, tensor: TensorInfo, *, arch: str = "") -> int:
    """Where one tensor's own copy goes: an index into ``placement.devices``, or -1 for RAM.

    Tied embeddings have a second copy beside this one, on the output layer's device. Blocks
    that are not loaded (MTP) have no device at all: ask ``LayerFacts.loaded`` first.
    """
    name = tensor.name
    block = block_of(name)
    if block is None:
        if is_input_tensor(name):
            return MAIN_MEMORY
        # lfm2 files give the output norm this name by an old mistake.
        output_norm = arch.startswith("lfm2") and name.startswith("token_embd_norm.")
        first = name.startswith(_FIRST_BLOCK_TENSORS) and not output_norm
        return placement.layer_devices[0 if first else -1]
    if block >= len(placement.layer_devices) - 1:
        return MAIN_MEMORY
    if block in placement.cpu_expert_layers and is_routed_expert(name):
        return MAIN_MEMORY
    return placement.layer_devices[block]
