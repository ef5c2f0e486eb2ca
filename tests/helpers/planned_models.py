"""Models to plan for: published ones by their tensor tables, and small ones made by hand."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from moelauncher.core.files.gguf_header import TensorInfo, read_header
from moelauncher.core.files.model_facts import LayerFacts, ModelFacts, facts_of
from moelauncher.core.memory.placement import PlacementDevice
from tests.helpers.truth_models import write_truth_model

MIB = 1 << 20
GIB = 1 << 30
F32 = 0
Q8_0 = 8


@functools.cache
def truth_facts(name: str) -> ModelFacts:
    """The facts of a published model; its file is gone again when this returns."""
    with tempfile.TemporaryDirectory() as folder:
        return facts_of([read_header(write_truth_model(Path(folder), name))])


def gpu(free_gib: float, name: str = "RTX") -> PlacementDevice:
    """A pretended card with so much free memory."""
    return PlacementDevice(name, round(free_gib * GIB), pretended=True)


def made_facts(
    layers: Sequence[tuple[int, int]],
    *,
    arch: str = "qwen3moe",
    keys: Mapping[str, object] | None = None,
    n_not_loaded: int = 0,
    output_bytes: int = 10 * MIB,
    token_embd_bytes: int = 10 * MIB,
    tied_output: bool = False,
    unplaceable_experts: bool = False,
    kinds: Mapping[int, str] | None = None,
    n_vocab: int = 1000,
    ctx_train: int | None = None,
) -> ModelFacts:
    """Facts made by hand: ``layers`` are (dense bytes, expert bytes), MTP blocks last.

    ``keys`` are metadata without the architecture's prefix.
    """
    kinds = kinds or {}
    first_mtp = len(layers) - n_not_loaded
    blocks = tuple(
        LayerFacts(
            index=index,
            kind="mtp" if index >= first_mtp else kinds.get(index, "attention"),
            loaded=index < first_mtp,
            expert_bytes=experts,
            dense_bytes=dense,
        )
        for index, (dense, experts) in enumerate(layers)
    )
    embedding = TensorInfo("token_embd.weight", (32, 32), F32, 0, token_embd_bytes, 1024)
    metadata = {f"{arch}.{key}": value for key, value in (keys or {}).items()}
    n_embd = metadata.get(f"{arch}.embedding_length")
    return ModelFacts(
        path=Path("/models/made up.gguf"),
        files=(Path("/models/made up.gguf"),),
        name="made up",
        arch=arch,
        quant="Q8_0",
        size_bytes=sum(dense + experts for dense, experts in layers),
        role="chat",
        n_params=1000,
        n_active_params=100,
        n_layer_all=len(layers),
        layers=blocks,
        n_expert=8,
        n_expert_used=2,
        ctx_train=ctx_train,
        n_embd=n_embd if isinstance(n_embd, int) else 64,
        n_vocab=n_vocab,
        tied_output=tied_output,
        token_embd_bytes=token_embd_bytes,
        output_bytes=output_bytes,
        unplaceable_experts=unplaceable_experts,
        has_chat_template=True,
        metadata=metadata,
        tensors=(embedding,),
    )
