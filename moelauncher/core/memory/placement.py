"""The slider's meaning: which layers' experts stay on the CPU, and where every layer goes.

In: :class:`ModelFacts`, the GPUs, the slider's stop. Out: :class:`Placement`. Pure, microseconds.

The rules are llama.cpp's own, so that the plan is what a load then does:

* layer to device: ``llama_model_base::load_tensors`` in ``src/llama-model.cpp``
  (``get_layer_buft_list``), which computes in 32-bit floats, as is done here;
* override patterns: ``llm_ffn_block_regex`` and ``LLM_FFN_EXPS_REGEX`` in ``common/common.h``,
  what ``--n-cpu-moe`` writes;
* input and output tensors: the layer column of ``LLM_TENSOR_INFOS`` in ``src/llama-arch.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.errors import LauncherError, WrongArguments
from moelauncher.core.translate import tr

if TYPE_CHECKING:
    from moelauncher.core.files.gguf_header import TensorInfo
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.forecast import Margins

#: Index of main memory where a device is expected.
MAIN_MEMORY = -1

#: What ``--n-cpu-moe`` matches inside one block; the fused gate_up must be in it.
EXPERT_TENSOR_REGEX = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERT = re.compile(r"blk\.\d+" + EXPERT_TENSOR_REGEX)

#: Tensors outside the blocks that llama.cpp keeps in RAM (``LLM_TENSOR_LAYER_INPUT``).
_INPUT_TENSORS = frozenset(
    {"token_embd", "position_embd", "token_types", "per_layer_token_embd"},
)
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


def expert_pattern(block: int) -> str:
    """The override pattern of one block's routed experts, as ``--n-cpu-moe`` writes it."""
    return rf"blk\.{block}{EXPERT_TENSOR_REGEX}"


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


def place(
    facts: ModelFacts,
    gpus: Sequence[PlacementDevice],
    *,
    cpu_moe: int,
    which: str = "first",
    n_gpu_layers: int | None = None,
    tensor_split: Sequence[float] | None = None,
    context: ContextSettings | None = None,
    margins: Margins | None = None,
) -> Placement:
    """The placement at slider stop ``cpu_moe`` (clamped to the stops there are).

    ``n_gpu_layers`` None means everything. Without ``tensor_split`` several GPUs share the
    layers by bytes: weights left on the GPU, plus KV cache, state and compute where
    ``context`` is given, in the room that ``margins`` leave. Raises WrongArguments for a
    split that does not match the GPUs, LauncherError for an unknown ``which`` and negative
    counts.
    """
    if which not in ("first", "last"):
        raise LauncherError(
            tr("“{which}” is no choice of expert layers.").format(which=which),
            tr('Choose "first" or "last".'),
        )
    if cpu_moe < 0 or (n_gpu_layers is not None and n_gpu_layers < 0):
        raise LauncherError(tr("A number of layers cannot be negative."))
    devices = tuple(gpus)
    stops = expert_stops(facts)
    stop = min(cpu_moe, len(stops))
    chosen = stops[:stop] if which == "first" else stops[len(stops) - stop :]
    everything = facts.n_layer_all + 1
    on_gpu = everything if n_gpu_layers is None else min(n_gpu_layers, everything)
    if not devices:
        on_gpu = 0
    split = _split(facts, devices, chosen, on_gpu, tensor_split, context, margins)
    return Placement(
        cpu_moe=stop,
        of=len(stops),
        which=which,
        devices=devices,
        cpu_expert_layers=chosen,
        n_gpu_layers=on_gpu,
        layer_devices=layer_devices(facts.n_layer_all, on_gpu, len(devices), split),
        tensor_split=split,
        # Without a GPU an override would only keep weights out of the repacked CPU buffers.
        patterns=tuple(expert_pattern(block) for block in chosen) if devices else (),
    )


def _split(
    facts: ModelFacts,
    devices: tuple[PlacementDevice, ...],
    cpu_expert_layers: tuple[int, ...],
    n_gpu_layers: int,
    tensor_split: Sequence[float] | None,
    context: ContextSettings | None,
    margins: Margins | None,
) -> tuple[float, ...]:
    if tensor_split:
        if len(tensor_split) != max(len(devices), 1):
            raise _wrong_split(len(tensor_split), len(devices))
        # llama.cpp adds them up in 32-bit floats: beyond these the sum is no number any more.
        if not all(0 <= part < 1e30 for part in tensor_split) or max(tensor_split) < 1e-30:
            raise WrongArguments(
                tr("A tensor split needs numbers of 0 or more, and one above 0."),
                tr("Give one number a GPU, for example 3,2."),
            )
        return tuple(float(part) for part in tensor_split) if len(devices) > 1 else ()
    if len(devices) < 2:
        return ()
    # Here, not at the top: the way there leads over the forecast, which imports this module.
    from moelauncher.core.memory.tensor_split import split_by_bytes

    return split_by_bytes(facts, devices, cpu_expert_layers, n_gpu_layers, context, margins)


def _wrong_split(n_parts: int, n_gpus: int) -> WrongArguments:
    parts = tr("1 part") if n_parts == 1 else tr("{n} parts").format(n=n_parts)
    if n_gpus == 0:
        gpus, hint = tr("there is no GPU"), tr("Leave it out: everything is in RAM.")
    elif n_gpus == 1:
        gpus, hint = tr("there is 1 GPU"), tr("Leave it out: the only GPU takes all of it.")
    else:
        gpus = tr("there are {n} GPUs").format(n=n_gpus)
        hint = tr("Give one number a GPU, for example 3,2.")
    text = tr("The tensor split has {parts}, but {gpus}.").format(parts=parts, gpus=gpus)
    return WrongArguments(text, hint)


def block_of(tensor_name: str) -> int | None:
    """The block that a tensor belongs to; None for the tensors outside the blocks."""
    match = _BLOCK.match(tensor_name)
    return int(match[1]) if match else None


def is_routed_expert(tensor_name: str) -> bool:
    """Whether the slider's patterns match this tensor (biases and ``_chexps`` included)."""
    return _EXPERT.match(tensor_name) is not None


def is_input_tensor(tensor_name: str) -> bool:
    """Whether llama.cpp keeps this tensor outside the blocks in RAM whatever the placement."""
    return tensor_name.split(".", 1)[0] in _INPUT_TENSORS


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
