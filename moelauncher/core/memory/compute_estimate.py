"""Compute buffers, estimated: shown until llama.cpp's dry run has answered.

In: facts, placement, context. Out: bytes per device. Pure; any thread. The real size comes
out of ggml's graph allocator and cannot be had by formula; this names the tensors that
make the peak (``src/llama-graph.cpp``): logits on the output layer's device, the attention
mask, the copies of expert weights that prompts make (op offload), and activations. Tried
against dry runs of five models, it is right within about a tenth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.files.per_model import once_per_model
from moelauncher.core.memory.cache_shape import cache_shape
from moelauncher.core.memory.kv_cache import padded, window_cells
from moelauncher.core.memory.placement import MAIN_MEMORY
from moelauncher.core.memory.tensor_names import block_of, is_routed_expert

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings
    from moelauncher.core.memory.placement import Placement

#: Prompts shorter than this are computed where the weights are (ggml's op offload).
OP_OFFLOAD_TOKENS = 32
#: Copies of the inputs with pipeline parallelism (``GGML_SCHED_MAX_COPIES``).
_PIPELINE_COPIES = 4
_FLOAT = 4


@dataclass(frozen=True)
class ComputeSizes:
    """What the estimate needs of a model; values per token, bytes for the weights."""

    n_embd: int
    n_vocab: int
    layer_width: int  # the widest moment of a layer whose weights lie beside it
    staged_width: int  # ... while a copy of expert weights is used
    largest_expert_bytes: tuple[int, ...]  # per block: its largest routed expert tensor


@once_per_model
def compute_sizes(facts: ModelFacts) -> ComputeSizes:
    """The model's widths, from the shapes of its tensors."""
    largest = [0] * facts.n_layer_all
    attention = feed_forward = expert = 0
    for tensor in facts.tensors:
        block = block_of(tensor.name)
        if block is None or block >= facts.n_layer_all or len(tensor.shape) < 2:
            continue
        if is_routed_expert(tensor.name):
            largest[block] = max(largest[block], tensor.n_bytes)
            if ".ffn_down_exps." in tensor.name:
                expert = max(expert, tensor.shape[0])
        elif ".ffn_down." in tensor.name:
            feed_forward = max(feed_forward, tensor.shape[0])
        elif ".attn_" in tensor.name or ".ssm_" in tensor.name:
            attention = max(attention, tensor.shape[1])
    n_embd = facts.n_embd or 0
    used = facts.n_expert_used if expert else 0
    return ComputeSizes(
        n_embd=n_embd,
        n_vocab=facts.n_vocab or 0,
        layer_width=max(
            # the experts' results, weighted and not, beside what went into them
            2 * used * n_embd + used * expert + 3 * n_embd,
            2 * feed_forward + 3 * n_embd,
            3 * attention + 2 * n_embd,
        ),
        staged_width=used * (expert + n_embd) + 4 * n_embd,
        largest_expert_bytes=tuple(largest),
    )


@dataclass(frozen=True)
class _Parts:
    """The pieces of the peak, in bytes."""

    mask: int
    hidden: int
    layer: int
    staged: int  # beside a copy of expert weights
    logits: int


def _parts(facts: ModelFacts, context: ContextSettings, flash_attention: bool) -> _Parts:
    sizes = compute_sizes(facts)
    shape = cache_shape(facts)
    n_tokens = min(context.n_ubatch, padded(context.n_ctx))
    mask_value = 2 if flash_attention else _FLOAT
    mask = padded(context.n_ctx) * n_tokens * mask_value if shape.layers else 0
    if shape.window:
        mask += window_cells(shape.window, context) * n_tokens * mask_value
    return _Parts(
        mask=mask,
        hidden=sizes.n_embd * n_tokens * _FLOAT,
        layer=sizes.layer_width * n_tokens * _FLOAT,
        staged=sizes.staged_width * n_tokens * _FLOAT,
        logits=(sizes.n_vocab + sizes.n_embd) * n_tokens * _FLOAT,
    )


def _staging_bytes(
    facts: ModelFacts, context: ContextSettings, parts: _Parts, blocks: Iterable[int]
) -> int:
    """What ``blocks`` with experts on the CPU add to their GPU's peak."""
    if context.n_ubatch < OP_OFFLOAD_TOKENS:
        return 0
    largest = compute_sizes(facts).largest_expert_bytes
    copied = max((largest[block] for block in blocks), default=0)
    return max(copied + parts.staged - parts.layer, 0) if copied else 0


def output_buffer_bytes(facts: ModelFacts) -> int:
    """The logits that wait in main memory: those of one token, as with any single sequence."""
    return compute_sizes(facts).n_vocab * _FLOAT


@dataclass(frozen=True)
class GpuCompute:
    """What makes a GPU's compute buffer, for cutting the layers between several."""

    blocks_bytes: int  # with any block: the mask and the activations
    staged_bytes: tuple[int, ...]  # per block: what it adds if it is the largest on the GPU
    logits_bytes: int  # with the output layer: at least this


def gpu_compute(
    facts: ModelFacts,
    cpu_expert_layers: Sequence[int],
    context: ContextSettings,
    *,
    pipeline: bool,
) -> GpuCompute:
    """The parts of which :func:`estimate_compute_bytes` makes each GPU's number."""
    parts = _parts(facts, context, flash_attention=True)
    copies = _PIPELINE_COPIES if pipeline else 1
    staged = [0] * facts.n_layer_all
    for block in cpu_expert_layers:
        staged[block] = _staging_bytes(facts, context, parts, (block,))
    return GpuCompute(copies * parts.mask + parts.layer, tuple(staged), parts.logits)


def estimate_compute_bytes(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    *,
    flash_attention: bool = True,
) -> tuple[int, ...]:
    """Bytes per GPU in the placement's order, and last main memory's."""
    parts = _parts(facts, context, flash_attention)
    n_gpus = len(placement.devices)
    pipeline = n_gpus > 1 and not placement.patterns and placement.n_gpu_layers > facts.n_layer_all
    copies = _PIPELINE_COPIES if pipeline else 1
    *blocks, output = placement.layer_devices
    result = []
    for device in range(n_gpus):
        peak = 0
        if device in blocks:
            here = (block for block in placement.cpu_expert_layers if blocks[block] == device)
            peak = copies * parts.mask + parts.layer
            peak += _staging_bytes(facts, context, parts, here)
        if output == device:
            peak = max(peak, parts.logits)
        result.append(peak)
    inputs = copies * (parts.mask + parts.hidden)
    if MAIN_MEMORY in blocks:
        inputs += parts.layer
    if output == MAIN_MEMORY:
        inputs = max(inputs, parts.logits + parts.mask)
    return (*result, inputs)
