"""What a model *is*, computed from its header(s): layers, experts, bytes, parameters.

In: the headers of all shards of one model. Out: :class:`ModelFacts`. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.gguf_header import GgufHeader, TensorInfo


@dataclass(frozen=True)
class LayerFacts:
    """One block. Bytes are what llama.cpp loads (each tensor's own type)."""

    index: int
    kind: str  # "attention" | "recurrent" | "mtp"
    loaded: bool  # False: MTP blocks, which llama.cpp skips unless asked
    expert_bytes: int  # routed experts, biases included
    dense_bytes: int  # everything else: attention, norms, router, shared experts, dense FFN

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
    role: str  # "chat" | "embedding" | "reranker" | "mmproj" | "lora" | "imatrix" | "vocab" | "draft" | "diffusion" | "other"
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
    token_embd_bytes: int
    output_bytes: int  # output.weight (or the tied copy) and output norm: index n_layer_all
    #: Experts stored one tensor an expert (old Mixtral): cannot be placed by pattern.
    unplaceable_experts: bool
    has_chat_template: bool
    metadata: Mapping[str, object]  # merged, long arrays skipped
    tensors: tuple[TensorInfo, ...]  # of all shards

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """Block indices that hold routed experts: the slider's stops are 0..len of this."""
        return tuple(layer.index for layer in self.layers if layer.holds_experts)

    @property
    def n_layer(self) -> int:
        """Blocks that are loaded (MTP blocks left out)."""
        return sum(layer.loaded for layer in self.layers)


def facts_of(headers: Sequence[GgufHeader]) -> ModelFacts:
    """The facts of one model from the headers of all its shards, in order."""
    raise NotImplementedError
