"""What a model *is*, computed from its header(s): layers, experts, bytes, parameters.

In: the headers of all shards of one model. Out: :class:`ModelFacts`. Pure; any thread.
Tensor names and shapes are asked before metadata keys: keys are missing or differ between
files of the same model, while llama.cpp allocates exactly what the tensor table says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moelauncher.core.errors import LauncherError
from moelauncher.core.ggml_types import GGML_TYPES, file_type_label
from moelauncher.core.gguf_header import GgufHeader, SkippedArray, TensorInfo
from moelauncher.core.known_architectures import (
    DIFFUSION_ARCHITECTURES,
    DRAFT_ARCHITECTURES,
    EMBEDDING_ARCHITECTURES,
    ENCODER_ARCHITECTURES,
    NEXTN_REPURPOSED,
    OTHER_ARCHITECTURES,
)
from moelauncher.core.translate import tr


@dataclass(frozen=True)
class LayerFacts:
    """One block. Bytes are what stands in the file (each tensor's own type)."""

    index: int
    kind: str  # "attention" | "recurrent" | "mtp"
    loaded: bool  # False: MTP blocks, which llama.cpp skips unless asked
    expert_bytes: int  # routed experts, biases included
    dense_bytes: int  # everything else: attention, norms, router, shared experts, dense FFN
    #: Whether the block has a KV cache and a recurrent (or convolution) state of its own; some
    #: hybrids have both in one block, a block that is only a feed-forward net has neither.
    keeps_kv: bool = True
    keeps_state: bool = False

    @property
    def holds_experts(self) -> bool:
        """Whether the block has routed experts that the slider can move."""
        return self.loaded and self.expert_bytes > 0


@dataclass(frozen=True)
class ModelFacts:
    """Everything that placement, forecast, list and card need to know of a model."""

    path: Path  # the first shard
    files: tuple[Path, ...]
    name: str
    arch: str
    quant: str  # label for people: "Q4_K_M", "MXFP4"; placement uses each tensor's own type
    size_bytes: int  # file bytes, all shards
    #: "chat", "embedding", "reranker", "mmproj", "lora", "imatrix", "vocab", "draft",
    #: "diffusion" or "other"; only "chat" is offered for chat.
    role: str
    n_params: int
    n_active_params: int
    #: All blocks of block_count, MTP blocks included (llama.cpp's ``n_layer_all``).
    n_layer_all: int
    layers: tuple[LayerFacts, ...]
    n_expert: int
    n_expert_used: int
    ctx_train: int | None
    n_embd: int | None
    n_vocab: int | None
    #: Tied embeddings: the output matrix is ``token_embd`` again (a second copy on the GPU).
    tied_output: bool
    #: All of llama.cpp's input layer (token and position embeddings, per-layer embeddings):
    #: always in RAM.
    token_embd_bytes: int
    output_bytes: int  # output.weight (or the tied copy) and output norm: index n_layer_all
    #: Experts stored one tensor an expert (old Mixtral): cannot be placed by pattern.
    unplaceable_experts: bool
    has_chat_template: bool
    metadata: Mapping[str, object]  # merged, long arrays skipped
    tensors: tuple[TensorInfo, ...]  # of all shards
    #: Rope factors: every device that holds a block gets its own copy of these few bytes.
    rope_bytes: int = 0
    #: In the file, but never loaded: MTP blocks and tensors that llama.cpp ignores.
    not_loaded_bytes: int = 0
    #: Why the slider has no stops, as a sentence; "" where it has some.
    no_stops_reason: str = ""
    byte_order: str = "little"
    tensor_bytes: int = 0  # the whole tensor table

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """Block indices that hold routed experts: the slider's stops are 0..len of this."""
        return tuple(layer.index for layer in self.layers if layer.holds_experts)

    @property
    def n_layer(self) -> int:
        """Blocks that are loaded (MTP blocks left out)."""
        return sum(layer.loaded for layer in self.layers)

    @property
    def expert_bytes(self) -> int:
        """Routed expert weights of all loaded blocks: what the slider can move."""
        return sum(layer.expert_bytes for layer in self.layers if layer.loaded)

    @property
    def loaded_bytes(self) -> int:
        """What a load takes on all devices together, a tied output matrix counted twice.

        Rope factors are in it once. llama.cpp makes no second copy of a tied matrix where the
        output layer stays in main memory too.
        """
        return (
            self.token_embd_bytes
            + self.output_bytes
            + self.rope_bytes
            + sum(layer.expert_bytes + layer.dense_bytes for layer in self.layers if layer.loaded)
        )


_TOKEN_EMBD = "token_embd.weight"
#: llama.cpp's LLAMA_MAX_LAYERS.
_MAX_LAYERS = 512

_BLOCK = re.compile(r"^(?:enc\.|dec\.)?blk\.(\d{1,4})\.(.*)$")
#: The tail of llama.cpp's own pattern for the experts of one block (``--n-cpu-moe``).
_ROUTED = re.compile(r"^ffn_(?:up|down|gate|gate_up)_(?:ch|)exps")
#: Old Mixtral conversions: one tensor an expert.
_SINGLE_EXPERT = re.compile(r"^ffn_(?:gate|up|down)\.(\d+)\.weight$")
_STATE = ("ssm_", "shortconv.", "time_mix_")
#: What only a block with real attention has (recurrent blocks may have attn_qkv, attn_gate).
_ATTENTION = ("attn_output.", "attn_out.", "attn_kv_a_mqa.", "attn_kv_b.", "attn_k_b.")

#: What some converters wrote for want of a name: a hash, or a path on their own machine.
_POOR_NAME = re.compile(r"^[0-9a-f]{32,}$|[/\\]")

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
_IGNORED = ("masked_embd_centroids.", "masked_embd_ordering.")


@dataclass
class _Block:
    """The sums of one block while the tensor table is walked."""

    expert_bytes: int = 0
    dense_bytes: int = 0
    active: float = 0.0
    has_state: bool = False
    has_attention: bool = False
    has_nextn: bool = False


def facts_of(headers: Sequence[GgufHeader]) -> ModelFacts:
    """The facts of one model from the headers of all its shards, in order.

    Raises :class:`~moelauncher.core.errors.LauncherError` where the headers contradict
    themselves so far that no facts can be given.
    """
    metadata = _merged_metadata(headers)
    tensors = tuple(
        tensor if shard == 0 else replace(tensor, shard=shard)
        for shard, header in enumerate(headers)
        for tensor in header.tensors
    )
    return _Reading(tuple(headers), metadata, tensors).facts()


def _merged_metadata(headers: Sequence[GgufHeader]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for header in reversed(headers):
        merged.update(header.metadata)
    return merged


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


class _Reading:
    """One pass over the tensor table; holds what the pass found."""

    def __init__(
        self,
        headers: tuple[GgufHeader, ...],
        metadata: Mapping[str, object],
        tensors: tuple[TensorInfo, ...],
    ) -> None:
        self.headers = headers
        self.metadata = metadata
        self.tensors = tensors
        arch = metadata.get("general.architecture")
        self.arch = arch.strip() if isinstance(arch, str) else ""
        self.by_name = {tensor.name: tensor for tensor in tensors}
        self.n_layer_all = self._count_blocks()
        self.blocks = [_Block() for _ in range(self.n_layer_all)]
        self.input_bytes = self.output_bytes = self.rope_bytes = self.ignored_bytes = 0
        self.active = 0.0
        self.n_expert = 0
        self.single_experts: set[int] = set()

    def _key(self, name: str) -> object:
        return self.metadata.get(f"{self.arch}.{name}")

    def _number(self, name: str) -> int | None:
        return _whole_number(self._key(name))

    def _per_block(self, name: str, index: int) -> int | None:
        """A value that is one number for all blocks or an array with one a block."""
        value = self._key(name)
        if isinstance(value, tuple):
            value = value[index] if index < len(value) else None
        return _whole_number(value)

    def _count_blocks(self) -> int:
        stated = self._number("block_count")
        if stated is not None and stated > _MAX_LAYERS:
            raise LauncherError(
                tr("The file is damaged: it claims {n} layers.").format(n=stated),
                tr("Download or copy it again."),
            )
        if stated:
            return stated
        found = (_BLOCK.match(tensor.name) for tensor in self.tensors)
        indices = [int(match[1]) for match in found if match]
        return min(max(indices, default=-1) + 1, _MAX_LAYERS)

    def facts(self) -> ModelFacts:
        tied = self._is_tied()
        for tensor in self.tensors:
            self._account(tensor, tied)
        layers = self._layers()
        not_loaded = self.ignored_bytes + sum(
            layer.expert_bytes + layer.dense_bytes for layer in layers if not layer.loaded
        )
        active = self.active + sum(
            block.active for block, layer in zip(self.blocks, layers, strict=True) if layer.loaded
        )
        embedding = self.by_name.get(_TOKEN_EMBD)
        output_bytes = self.output_bytes
        if tied and embedding is not None:
            output_bytes += embedding.n_bytes
        unplaceable = bool(self.single_experts)
        n_expert = self.n_expert or len(self.single_experts)
        return ModelFacts(
            path=self.headers[0].path,
            files=tuple(header.path for header in self.headers),
            name=self._name(),
            arch=self.arch,
            quant=self._quant(),
            size_bytes=sum(header.file_bytes for header in self.headers),
            role=self._role(),
            n_params=sum(tensor.n_elements for tensor in self.tensors),
            n_active_params=round(active),
            n_layer_all=self.n_layer_all,
            layers=layers,
            n_expert=n_expert,
            n_expert_used=self._n_expert_used(n_expert),
            ctx_train=self._number("context_length"),
            n_embd=self._number("embedding_length") or self._dimension(embedding, 0),
            n_vocab=self._n_vocab(embedding),
            tied_output=tied,
            token_embd_bytes=self.input_bytes,
            output_bytes=output_bytes,
            unplaceable_experts=unplaceable,
            has_chat_template=self._has_chat_template(),
            metadata=self.metadata,
            tensors=self.tensors,
            rope_bytes=self.rope_bytes,
            not_loaded_bytes=not_loaded,
            no_stops_reason=self._no_stops_reason(layers, unplaceable),
            byte_order=self.headers[0].byte_order,
            tensor_bytes=sum(tensor.n_bytes for tensor in self.tensors),
        )

    def _is_tied(self) -> bool:
        return (
            _TOKEN_EMBD in self.by_name
            and "output.weight" not in self.by_name
            and self.arch not in ENCODER_ARCHITECTURES
        )

    def _account(self, tensor: TensorInfo, tied: bool) -> None:
        """Add one tensor to where llama.cpp allocates it."""
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
            if tied and name == _TOKEN_EMBD:
                self.active += tensor.n_elements
        elif name.startswith(_ROPE):
            self.rope_bytes += tensor.n_bytes
        elif name.startswith(_IGNORED):
            self.ignored_bytes += tensor.n_bytes
        elif self._belongs_to_first_block(name):
            self.blocks[0].dense_bytes += tensor.n_bytes
            self.blocks[0].active += tensor.n_elements
        else:
            self.output_bytes += tensor.n_bytes
            self.active += tensor.n_elements

    def _belongs_to_first_block(self, name: str) -> bool:
        # lfm2 files give the output norm this name by an old mistake.
        if self.arch.startswith("lfm2") and name.startswith("token_embd_norm."):
            return False
        return bool(self.blocks) and name.startswith(_FIRST_BLOCK)

    def _account_in_block(self, block: _Block, index: int, part: str, tensor: TensorInfo) -> None:
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
            stated = self._number("expert_count") or 0
            block.active += tensor.n_elements * self._used_share(index, stated)
        else:
            block.active += tensor.n_elements
        block.has_state |= part.startswith(_STATE)
        block.has_attention |= part.startswith(_ATTENTION)
        block.has_nextn |= part.startswith("nextn.")

    def _used_share(self, index: int, count: int) -> float:
        used = self._per_block("expert_used_count", index)
        if not count or used is None:
            return 1.0
        return min(1.0, used / count)

    def _layers(self) -> tuple[LayerFacts, ...]:
        first_mtp = self.n_layer_all
        if self.arch not in NEXTN_REPURPOSED:
            first_mtp -= min(self._number("nextn_predict_layers") or 0, self.n_layer_all)
        layers = []
        for index, block in enumerate(self.blocks):
            is_mtp = index >= first_mtp or (block.has_nextn and self.arch not in NEXTN_REPURPOSED)
            n_head_kv = self._per_block("attention.head_count_kv", index)
            keeps_kv = n_head_kv != 0 and (block.has_attention or not block.has_state)
            kind = "attention"
            if is_mtp:
                kind = "mtp"
            elif block.has_state and not keeps_kv:
                kind = "recurrent"
            layers.append(
                LayerFacts(
                    index=index,
                    kind=kind,
                    loaded=not is_mtp,
                    expert_bytes=block.expert_bytes,
                    dense_bytes=block.dense_bytes,
                    keeps_kv=keeps_kv and not is_mtp,
                    keeps_state=block.has_state and not is_mtp,
                )
            )
        return tuple(layers)

    def _n_expert_used(self, n_expert: int) -> int:
        if not n_expert:
            return 0
        value = self._key("expert_used_count")
        values = value if isinstance(value, tuple) else (value,)
        return max((_whole_number(each) or 0 for each in values), default=0)

    @staticmethod
    def _dimension(tensor: TensorInfo | None, axis: int) -> int | None:
        return tensor.shape[axis] if tensor is not None and len(tensor.shape) > axis else None

    def _n_vocab(self, embedding: TensorInfo | None) -> int | None:
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, SkippedArray):
            return tokens.length
        if isinstance(tokens, tuple):
            return len(tokens)
        return self._dimension(embedding, 1) or self._number("vocab_size")

    def _name(self) -> str:
        name = self.metadata.get("general.name")
        if isinstance(name, str) and name.strip() and not _POOR_NAME.search(name.strip()):
            return name.strip()
        return re.sub(r"-\d{5}-of-\d{5}$", "", self.headers[0].path.stem)

    def _quant(self) -> str:
        label = file_type_label(self.metadata.get("general.file_type"))
        by_type: dict[int, int] = {}
        for tensor in self.tensors:
            by_type[tensor.ggml_type] = by_type.get(tensor.ggml_type, 0) + tensor.n_bytes
        if not by_type:
            return ""
        largest = GGML_TYPES[max(by_type, key=lambda kind: by_type[kind])].name
        # Converters leave "F16" or "F32" standing when they only repack quantised weights.
        if label is None or (label in ("F32", "F16", "BF16") and label != largest):
            return largest
        return label

    def _has_chat_template(self) -> bool:
        template = self.metadata.get("tokenizer.chat_template")
        return isinstance(template, str) and bool(template.strip())

    def _role(self) -> str:
        kind = self.metadata.get("general.type")
        arch = self.arch
        if kind == "mmproj" or arch in ("clip", "mmproj"):
            return "mmproj"
        if kind == "adapter":
            return "lora" if self.metadata.get("adapter.type") == "lora" else "other"
        if kind == "imatrix" or "imatrix.chunk_count" in self.metadata:
            return "imatrix"
        if arch in DIFFUSION_ARCHITECTURES:
            return "diffusion"
        if not self.tensors:
            return "vocab"
        if arch in DRAFT_ARCHITECTURES or self._holds_only_mtp():
            return "draft"
        pooling = self._number("pooling_type") or 0
        if pooling == 4:
            return "reranker"
        if arch in EMBEDDING_ARCHITECTURES or pooling:
            return "embedding"
        if arch in OTHER_ARCHITECTURES or arch.startswith("controlvector"):
            return "other"
        return "chat"

    def _holds_only_mtp(self) -> bool:
        return bool(self._number("nextn_predict_layers")) and not any(
            tensor.name.startswith("blk.0.") for tensor in self.tensors
        )

    def _no_stops_reason(self, layers: tuple[LayerFacts, ...], unplaceable: bool) -> str:
        if any(layer.holds_experts for layer in layers):
            return ""
        if unplaceable:
            return tr(
                "This old file stores every expert as a tensor of its own, so experts cannot be "
                "placed, and today's llama.cpp does not load it. Download a newer conversion."
            )
        return tr("This model is dense: it has no experts to move.")
