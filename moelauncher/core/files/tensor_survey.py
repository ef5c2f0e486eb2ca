"""Where llama.cpp puts each tensor of a file, summed up: blocks, experts, input, output.

In: merged metadata and the tensor table. Out: :class:`TensorSurvey`, one pass over the table,
from which :mod:`moelauncher.core.files.model_facts` makes its facts. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.gguf_header import TensorInfo
from moelauncher.core.files.known_architectures import ENCODER_ARCHITECTURES
from moelauncher.core.translate import tr

TOKEN_EMBD = "token_embd.weight"
#: llama.cpp's LLAMA_MAX_LAYERS.
_MAX_LAYERS = 512

_BLOCK = re.compile(r"^(?:enc\.|dec\.)?blk\.(\d+)\.(.*)$", re.S)
#: The tail of llama.cpp's own pattern for the experts of one block (``--n-cpu-moe``).
_ROUTED = re.compile(r"^ffn_(?:up|down|gate|gate_up)_(?:ch|)exps")
#: Old Mixtral conversions: one tensor an expert.
_SINGLE_EXPERT = re.compile(r"^ffn_(?:gate|up|down)\.(\d+)\.weight$")
_STATE = ("ssm_", "shortconv.", "time_mix_")
#: What only a block with real attention has (recurrent blocks may have attn_qkv, attn_gate).
_ATTENTION = ("attn_output.", "attn_out.", "attn_kv_a_mqa.", "attn_kv_b.", "attn_k_b.")

#: llama.cpp's input layer, which always stays in main memory.
_INPUT = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.")
#: Without a block number, yet allocated with block 0.
_FIRST_BLOCK = (
    "token_embd_norm.",
    "per_layer_model_proj.",
    "per_layer_proj_norm.",
    "conv1d.",
    "hrm.z_l_init",
    "nextn.pre_projection.",
)
_ROPE = ("rope_freqs.", "rope_factors_long.", "rope_factors_short.")
#: Named by llama.cpp, used by nothing, so never allocated.
_IGNORED = ("masked_embd_centroids.", "masked_embd_ordering.")


def whole_number(value: object) -> int | None:
    """``value`` where it is a number of something; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


class ModelKeys:
    """The metadata that belongs to the file's own architecture."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        self.metadata = metadata
        arch = metadata.get("general.architecture")
        self.arch = arch.strip() if isinstance(arch, str) else ""

    def value(self, name: str) -> object:
        """The value of ``ARCH.name`` as it stands there; None where it is missing."""
        return self.metadata.get(f"{self.arch}.{name}")

    def number(self, name: str) -> int | None:
        """The same, where it is a number of something."""
        return whole_number(self.value(name))

    def per_block(self, name: str, index: int) -> int | None:
        """A value that is one number for all blocks, or an array with one a block."""
        value = self.value(name)
        if isinstance(value, tuple):
            value = value[index] if index < len(value) else None
        return whole_number(value)


@dataclass
class BlockSums:
    """The sums of one block. ``active``: parameters that take part in every token."""

    expert_bytes: int = 0
    dense_bytes: int = 0
    active: float = 0.0
    has_state: bool = False
    has_attention: bool = False
    has_nextn: bool = False


#: Tied models that llama.cpp gives no second copy: the output reads ``token_embd`` in RAM.
_READS_EMBEDDING_IN_PLACE = frozenset({"bitnet"})
#: Without ``token_embd`` these take a second copy of the output matrix for it, beside the first.
_EMBEDS_BY_OUTPUT = frozenset({"codeshell"})


class TensorSurvey:
    """One pass over the tensor table; the attributes are what it found."""

    def __init__(self, keys: ModelKeys, tensors: Sequence[TensorInfo]) -> None:
        """Raises LauncherError where the file claims more blocks than llama.cpp can have."""
        names = {tensor.name for tensor in tensors}
        self._keys = keys
        self.n_layer_all = _count_blocks(keys, tensors)
        self.blocks = [BlockSums() for _ in range(self.n_layer_all)]
        self.tied_output = (
            TOKEN_EMBD in names
            and "output.weight" not in names
            and keys.arch not in ENCODER_ARCHITECTURES
            and keys.arch not in _READS_EMBEDDING_IN_PLACE
        )
        self._embeds_by_output = TOKEN_EMBD not in names and keys.arch in _EMBEDS_BY_OUTPUT
        self.input_bytes = 0
        self.output_bytes = 0  # without a tied copy
        self.rope_bytes = 0
        self.ignored_bytes = 0
        self.active_outside_blocks = 0
        self.n_expert = 0
        self.single_experts: set[int] = set()
        for tensor in tensors:
            self._account(tensor)

    def _account(self, tensor: TensorInfo) -> None:
        name = tensor.name
        match = _BLOCK.match(name)
        if match is not None:
            index = int(match[1])
            if index < self.n_layer_all:
                self._account_in_block(self.blocks[index], index, match[2], tensor)
            else:
                self.ignored_bytes += tensor.n_bytes
        elif name.startswith(_INPUT):
            self.input_bytes += tensor.n_bytes
            if self.tied_output and name == TOKEN_EMBD:
                self.active_outside_blocks += tensor.n_elements
        elif name.startswith(_ROPE):
            self.rope_bytes += tensor.n_bytes
        elif name.startswith(_IGNORED):
            self.ignored_bytes += tensor.n_bytes
        elif self._belongs_to_first_block(name):
            self.blocks[0].dense_bytes += tensor.n_bytes
            self.blocks[0].active += tensor.n_elements
        else:
            twice = self._embeds_by_output and name == "output.weight"
            self.output_bytes += tensor.n_bytes * (2 if twice else 1)
            self.active_outside_blocks += tensor.n_elements

    def _belongs_to_first_block(self, name: str) -> bool:
        # lfm2 files give the output norm this name by an old mistake.
        if self._keys.arch.startswith("lfm2") and name.startswith("token_embd_norm."):
            return False
        return bool(self.blocks) and name.startswith(_FIRST_BLOCK)

    def _account_in_block(
        self, block: BlockSums, index: int, part: str, tensor: TensorInfo
    ) -> None:
        if _ROUTED.match(part) and tensor.name.startswith("blk."):
            block.expert_bytes += tensor.n_bytes
            count = tensor.shape[-1] if tensor.shape else 0
            if "_chexps" not in part:
                self.n_expert = max(self.n_expert, count)
            block.active += tensor.n_elements * self._used_share(index, count)
            return
        block.dense_bytes += tensor.n_bytes
        single = _SINGLE_EXPERT.match(part)
        if single:
            self.single_experts.add(int(single[1]))
            count = self._keys.number("expert_count") or 0
            block.active += tensor.n_elements * self._used_share(index, count)
        else:
            block.active += tensor.n_elements
        block.has_state |= part.startswith(_STATE)
        block.has_attention |= part.startswith(_ATTENTION)
        block.has_nextn |= part.startswith("nextn.")

    def _used_share(self, index: int, count: int) -> float:
        used = self._keys.per_block("expert_used_count", index)
        if not count or used is None:
            return 1.0
        return min(1.0, used / count)


def _count_blocks(keys: ModelKeys, tensors: Sequence[TensorInfo]) -> int:
    stated = keys.number("block_count")
    if not stated:
        found = (_BLOCK.match(tensor.name) for tensor in tensors)
        indices = [int(match[1]) for match in found if match]
        return min(max(indices, default=-1) + 1, _MAX_LAYERS)
    if keys.arch == "nanbeige":
        # Runs its blocks several times over; llama.cpp counts every pass as blocks.
        stated *= keys.number("num_loops") or 1
    elif keys.arch == "graniteswitch":
        stated += 1  # a block without weights, whose cache serves the router
    if stated > _MAX_LAYERS:
        raise LauncherError(
            tr("The file is damaged: it claims {n} layers.").format(n=stated),
            tr("Download or copy it again."),
        )
    return stated
