"""What a model *is*, computed from its header(s): layers, experts, bytes, parameters.

In: the headers of all shards of one model. Out: :class:`ModelFacts`. Pure; any thread.
Tensor names and shapes are asked before metadata keys: keys are missing or differ between
files of the same model, while llama.cpp allocates exactly what the tensor table says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moelauncher.core.files.ggml_types import GGML_TYPES, file_type_label
from moelauncher.core.files.gguf_header import GgufHeader, SkippedArray, TensorInfo
from moelauncher.core.files.known_architectures import (
    DIFFUSION_ARCHITECTURES,
    DRAFT_ARCHITECTURES,
    EMBEDDING_ARCHITECTURES,
    KNOWN_ARCHITECTURES,
    NEXTN_REPURPOSED,
    OTHER_ARCHITECTURES,
)
from moelauncher.core.files.tensor_survey import TOKEN_EMBD, ModelKeys, TensorSurvey, whole_number
from moelauncher.core.text_cleaning import display_name


@dataclass(frozen=True)
class LayerFacts:
    """One block. Bytes are what stands in the file (each tensor's own type)."""

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
    byte_order: str = "little"

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


#: What some converters wrote for want of a name: a hash, or a path on their own machine.
_POOR_NAME = re.compile(r"^[0-9a-f]{32,}$|^[/~]|\\|^$")
#: "OWNER/NAME": the owner says nothing about the model.
_OWNER = re.compile(r"^[\w.-]+/(?=[^/]+$)")


def facts_of(headers: Sequence[GgufHeader]) -> ModelFacts:
    """The facts of one model from the headers of all its shards, in order.

    Raises :class:`~moelauncher.core.errors.LauncherError` where the headers contradict
    themselves so far that no facts can be given.
    """
    metadata = _merged_metadata(headers)
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    keys = ModelKeys(metadata)
    survey = TensorSurvey(keys, tensors)
    layers = _layers(keys, survey)
    embedding = next((tensor for tensor in tensors if tensor.name == TOKEN_EMBD), None)
    tied_bytes = embedding.n_bytes if embedding is not None and survey.tied_output else 0
    n_expert = survey.n_expert or len(survey.single_experts)
    return ModelFacts(
        path=headers[0].path,
        files=tuple(header.path for header in headers),
        name=_name(metadata, headers[0].path),
        arch=keys.arch,
        quant=_quant(metadata, tensors),
        size_bytes=sum(header.file_bytes for header in headers),
        role=_role(keys, tensors),
        n_params=sum(tensor.n_elements for tensor in tensors),
        n_active_params=_active_params(survey, layers),
        n_layer_all=survey.n_layer_all,
        layers=layers,
        n_expert=n_expert,
        n_expert_used=_n_expert_used(keys, n_expert),
        ctx_train=keys.number("context_length"),
        n_embd=keys.number("embedding_length") or _dimension(embedding, 0),
        n_vocab=_n_vocab(keys, embedding),
        tied_output=survey.tied_output,
        token_embd_bytes=survey.input_bytes,
        output_bytes=survey.output_bytes + tied_bytes,
        unplaceable_experts=bool(survey.single_experts),
        has_chat_template=_has_chat_template(metadata),
        metadata=metadata,
        tensors=tensors,
        rope_bytes=survey.rope_bytes,
        not_loaded_bytes=survey.ignored_bytes
        + sum(layer.expert_bytes + layer.dense_bytes for layer in layers if not layer.loaded),
        byte_order=headers[0].byte_order,
    )


def _merged_metadata(headers: Sequence[GgufHeader]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for header in reversed(headers):
        merged.update(header.metadata)
    return merged


def _layers(keys: ModelKeys, survey: TensorSurvey) -> tuple[LayerFacts, ...]:
    has_mtp = keys.arch not in NEXTN_REPURPOSED
    first_mtp = survey.n_layer_all
    if has_mtp:
        first_mtp -= min(keys.number("nextn_predict_layers") or 0, first_mtp)
        # Files of this one may leave the MTP block out of block_count, and keep the key.
        if keys.arch == "deepseek4" and not any(
            block.has_nextn for block in survey.blocks[first_mtp:]
        ):
            first_mtp = survey.n_layer_all
    layers = []
    for index, block in enumerate(survey.blocks):
        is_mtp = has_mtp and (index >= first_mtp or block.has_nextn)
        n_head_kv = keys.per_block("attention.head_count_kv", index)
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
            )
        )
    return tuple(layers)


def _active_params(survey: TensorSurvey, layers: Sequence[LayerFacts]) -> int:
    in_blocks = sum(
        block.active for block, layer in zip(survey.blocks, layers, strict=True) if layer.loaded
    )
    return round(survey.active_outside_blocks + in_blocks)


def _n_expert_used(keys: ModelKeys, n_expert: int) -> int:
    if not n_expert:
        return 0
    value = keys.value("expert_used_count")
    values = value if isinstance(value, tuple) else (value,)
    return max((whole_number(each) or 0 for each in values), default=0)


def _dimension(tensor: TensorInfo | None, axis: int) -> int | None:
    return tensor.shape[axis] if tensor is not None and len(tensor.shape) > axis else None


def _n_vocab(keys: ModelKeys, embedding: TensorInfo | None) -> int | None:
    tokens = keys.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, SkippedArray):
        return tokens.length
    if isinstance(tokens, tuple):
        return len(tokens)
    return _dimension(embedding, 1) or keys.number("vocab_size")


def _name(metadata: Mapping[str, object], path: Path) -> str:
    name = metadata.get("general.name")
    if isinstance(name, str) and not _POOR_NAME.search(name.strip()):
        return _OWNER.sub("", name.strip())
    # A file's name may hold bytes that are no text; what is stored and shown is text.
    return display_name(re.sub(r"-\d{5}-of-\d{5}$", "", path.stem))


def _quant(metadata: Mapping[str, object], tensors: Sequence[TensorInfo]) -> str:
    by_type: dict[int, int] = {}
    for tensor in tensors:
        by_type[tensor.ggml_type] = by_type.get(tensor.ggml_type, 0) + tensor.n_bytes
    if not by_type:
        return ""
    largest = GGML_TYPES[max(by_type, key=lambda kind: by_type[kind])].name
    label = file_type_label(metadata.get("general.file_type"))
    # Converters leave "F16" or "F32" standing when they only repack quantised weights.
    if label is None or (label in ("F32", "F16", "BF16") and label != largest):
        return largest
    return label


def _has_chat_template(metadata: Mapping[str, object]) -> bool:
    template = metadata.get("tokenizer.chat_template")
    return isinstance(template, str) and bool(template.strip())


def _role(keys: ModelKeys, tensors: Sequence[TensorInfo]) -> str:
    kind, arch = keys.metadata.get("general.type"), keys.arch
    if kind == "mmproj" or arch in ("clip", "mmproj"):
        return "mmproj"
    if kind == "adapter":
        return "lora" if keys.metadata.get("adapter.type") == "lora" else "other"
    if kind == "imatrix" or "imatrix.chunk_count" in keys.metadata:
        return "imatrix"
    if arch in DIFFUSION_ARCHITECTURES:
        return "diffusion"
    if arch not in KNOWN_ARCHITECTURES:
        told = _role_by_tensors(tensors)
        if told:
            return told
    if not tensors:
        return "vocab"
    if arch in DRAFT_ARCHITECTURES or _holds_only_mtp(keys, tensors):
        return "draft"
    pooling = keys.number("pooling_type") or 0
    if pooling == _RANK_POOLING:
        return "reranker"
    if arch in EMBEDDING_ARCHITECTURES or pooling:
        return "embedding"
    if arch in OTHER_ARCHITECTURES or arch.startswith("controlvector"):
        return "other"
    return _role_by_tags(keys.metadata.get("general.tags"))


#: How tensors of image and video models begin; their converters often name no architecture.
_DIFFUSION_TENSORS = (
    "model.diffusion_model.",
    "first_stage_model.",
    "cond_stage_model.",
    "double_blocks.",
    "single_blocks.",
    "joint_blocks.",
    "transformer_blocks.",
    "input_blocks.",
)


def _role_by_tensors(tensors: Sequence[TensorInfo]) -> str:
    """The role that tensor names give away where the architecture says nothing; "" for none."""
    names = [tensor.name for tensor in tensors]
    if names and all(name.endswith((".lora_a", ".lora_b")) for name in names):
        return "lora"
    if names and all(name.endswith((".in_sum2", ".counts")) for name in names):
        return "imatrix"
    if any(name.startswith(("v.blk.", "mm.")) for name in names):
        return "mmproj"
    return "diffusion" if any(name.startswith(_DIFFUSION_TENSORS) for name in names) else ""


def _role_by_tags(tags: object) -> str:
    """The role that the model's makers tagged it with; a chat model where they did not."""
    named = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, tuple) else set()
    if named & {"text-generation", "conversational", "image-text-to-text"}:
        return "chat"
    if "text-ranking" in named:
        return "reranker"
    if named & {"sentence-similarity", "feature-extraction"}:
        return "embedding"
    return "chat"


#: llama.cpp's LLAMA_POOLING_TYPE_RANK.
_RANK_POOLING = 4


def _holds_only_mtp(keys: ModelKeys, tensors: Sequence[TensorInfo]) -> bool:
    return bool(keys.number("nextn_predict_layers")) and not any(
        tensor.name.startswith("blk.0.") for tensor in tensors
    )
