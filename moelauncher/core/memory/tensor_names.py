"""What a tensor's name tells: its block, and whether it is a routed expert or an input.

The rules are llama.cpp's own: ``llm_ffn_block_regex`` and ``LLM_FFN_EXPS_REGEX`` in
``common/common.h``, what ``--n-cpu-moe`` writes; the layer column of ``LLM_TENSOR_INFOS`` in
``src/llama-arch.cpp``.

In: names. Out: answers, and override patterns. Pure; any thread.
"""

from __future__ import annotations

import re

#: What ``--n-cpu-moe`` matches inside one block; the fused gate_up must be in it.
EXPERT_TENSOR_REGEX = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERT = re.compile(r"blk\.\d+" + EXPERT_TENSOR_REGEX)

#: Tensors outside the blocks that llama.cpp keeps in RAM (``LLM_TENSOR_LAYER_INPUT``).
_INPUT_TENSORS = frozenset(
    {"token_embd", "position_embd", "token_types", "per_layer_token_embd"},
)


def expert_pattern(block: int) -> str:
    """The override pattern of one block's routed experts, as ``--n-cpu-moe`` writes it."""
    return rf"blk\.{block}{EXPERT_TENSOR_REGEX}"


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
