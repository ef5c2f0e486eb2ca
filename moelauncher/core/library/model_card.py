"""Everything worth knowing of one model, as rows of text and numbers for its card.

In: facts, and (for what it will do here) the machine. Out: :class:`ModelCard`. Pure; any thread;
some milliseconds. Texts from the file are cleaned for one line; only the template stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from moelauncher.core.files.ggml_types import GGML_TYPES
from moelauncher.core.files.gguf_header import SkippedArray
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.kv_cache import kv_bytes, recurrent_bytes_per_layer
from moelauncher.core.memory.model_verdict import Verdict, verdict_of
from moelauncher.core.speed.speed_estimate import SpeedBasis, estimate_text
from moelauncher.core.speed.speed_prediction import token_traffic
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_parameters, format_tokens

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.auto_placement import Machine

#: Beyond every sliding window, so that only the caches that grow are counted.
_FAR_TOKENS = 1 << 20
_KV_STEP_TOKENS = 1 << 15
#: Values of a metadata array that are written out.
_SHOWN_VALUES = 12


@dataclass(frozen=True)
class TypeShare:
    """All tensors of one storage type."""

    name: str
    n_tensors: int
    n_bytes: int
    n_expert_bytes: int


@dataclass(frozen=True)
class LayerSize:
    """One block for the chart. ``kind`` as in LayerFacts."""

    index: int
    kind: str
    dense_bytes: int
    expert_bytes: int


@dataclass(frozen=True)
class ModelCard:
    """``summary`` and ``here`` are (label, value) rows; ``metadata`` (key, value)."""

    name: str
    summary: tuple[tuple[str, str], ...]
    here: tuple[tuple[str, str], ...]
    verdict: Verdict | None
    types: tuple[TypeShare, ...]
    layers: tuple[LayerSize, ...]
    metadata: tuple[tuple[str, str], ...]
    template: str


def card_of(
    facts: ModelFacts,
    machine: Machine | None = None,
    context: ContextSettings | None = None,
    *,
    measured: str = "",
    basis: SpeedBasis | None = None,
    device_labels: Mapping[str, str] = MappingProxyType({}),
) -> ModelCard:
    """The card; ``machine`` and ``context`` None: nothing is said of this machine.

    ``measured`` is the best speed that was measured here, as text; "" where none was.
    ``basis`` is what an estimate is made from; None: no speed is estimated. ``device_labels``
    say what people call a device ("RTX 4070" for "CUDA0").
    """
    verdict = None
    here: tuple[tuple[str, str], ...] = ()
    if machine is not None and context is not None:
        verdict = verdict_of(facts, machine, context)
        estimate = "" if basis is None else estimate_text(facts, verdict, context, basis)
        here = tuple(_here(facts, verdict, context, estimate, measured, device_labels))
    template = facts.metadata.get("tokenizer.chat_template")
    return ModelCard(
        name=display_name(facts.name) or display_name(facts.path.stem),
        summary=tuple((label, value) for label, value in _summary(facts) if value),
        here=here,
        verdict=verdict,
        types=_types(facts),
        layers=tuple(
            LayerSize(layer.index, layer.kind, layer.dense_bytes, layer.expert_bytes)
            for layer in facts.layers
        ),
        metadata=tuple(
            (display_name(key), value_text(value)) for key, value in sorted(facts.metadata.items())
        ),
        template=template if isinstance(template, str) else "",
    )


def value_text(value: object) -> str:
    """A metadata value on one line; long arrays are cut."""
    if isinstance(value, SkippedArray):
        return tr("{n} values").format(n=f"{value.length:,}")
    if isinstance(value, tuple):
        shown = ", ".join(value_text(item) for item in value[:_SHOWN_VALUES])
        if len(value) > _SHOWN_VALUES:
            shown += tr(", … ({n} values)").format(n=f"{len(value):,}")
        return display_name(shown)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return display_name(str(value))


def kv_bytes_per_1k(facts: ModelFacts, kv_type: str = "f16") -> int:
    """What 1,024 more tokens of context take, once sliding windows are full."""
    far = kv_bytes(facts, ContextSettings(n_ctx=_FAR_TOKENS + _KV_STEP_TOKENS, kv_type=kv_type))
    near = kv_bytes(facts, ContextSettings(n_ctx=_FAR_TOKENS, kv_type=kv_type))
    return (far - near) * 1024 // _KV_STEP_TOKENS


def _summary(facts: ModelFacts) -> list[tuple[str, str]]:
    meta = facts.metadata
    parameters = format_parameters(facts.n_params)
    if facts.n_expert:
        parameters = tr("{total}, {active} active for each token").format(
            total=parameters, active=format_parameters(facts.n_active_params)
        )
    state = sum(recurrent_bytes_per_layer(facts))
    files = format_bytes(facts.size_bytes)
    if len(facts.files) > 1:
        files = tr("{size} in {n} files").format(size=files, n=len(facts.files))
    return [
        (tr("Architecture"), display_name(facts.arch)),
        (tr("Parameters"), parameters),
        (tr("Experts"), _experts(facts)),
        (tr("Layers"), _layers(facts)),
        (tr("Stored as"), display_name(facts.quant)),
        (tr("Size"), files),
        (tr("Not loaded"), format_bytes(facts.not_loaded_bytes) if facts.not_loaded_bytes else ""),
        (tr("Context"), _tokens(facts.ctx_train)),
        (tr("KV cache"), tr("{size} for 1k tokens (f16)").format(
            size=format_bytes(kv_bytes_per_1k(facts)))),
        (tr("State"), format_bytes(state) if state else ""),
        (tr("Vocabulary"), _vocabulary(facts)),
        (tr("Chat template"), tr("in the file") if facts.has_chat_template else tr("none")),
        (tr("Licence"), _joined(meta, "general.license", "general.license.name")),
        (tr("Base model"), _base_model(meta)),
        (tr("Made by"), _joined(meta, "general.organization", "general.author")),
        (tr("Quantised by"), _joined(meta, "general.quantized_by")),
    ]  # fmt: skip


def _experts(facts: ModelFacts) -> str:
    if not facts.n_expert:
        return tr("none: a dense model")
    parts = [
        tr("{n} in a layer, {used} used for each token").format(
            n=facts.n_expert, used=facts.n_expert_used
        )
    ]
    shared = sum("_shexp." in tensor.name for tensor in facts.tensors) > 0
    count = facts.metadata.get(f"{facts.arch}.expert_shared_count")
    if shared and isinstance(count, int) and count > 0:
        parts.append(tr("{n} shared").format(n=count))
    elif shared:
        parts.append(tr("a shared one"))
    parts.append(tr("in {n} of {of} layers").format(n=len(facts.expert_layers), of=facts.n_layer))
    return ", ".join(parts)


def _layers(facts: ModelFacts) -> str:
    loaded = [layer for layer in facts.layers if layer.loaded]
    kinds = {
        tr("{n} attention"): sum(layer.kind == "attention" for layer in loaded),
        tr("{n} recurrent"): sum(layer.kind == "recurrent" for layer in loaded),
    }
    parts = [text.format(n=count) for text, count in kinds.items() if count]
    dense = sum(not layer.expert_bytes for layer in loaded)
    if facts.n_expert and dense:
        parts.append(tr("{n} of them dense").format(n=dense))
    mtp = sum(layer.kind == "mtp" for layer in facts.layers)
    if mtp:
        parts.append(tr("{n} MTP (not loaded)").format(n=mtp))
    return ", ".join(parts)


def _vocabulary(facts: ModelFacts) -> str:
    if not facts.n_vocab:
        return ""
    kind = facts.metadata.get("tokenizer.ggml.model")
    text = tr("{n} tokens").format(n=f"{facts.n_vocab:,}")
    return f"{text} ({display_name(kind)})" if isinstance(kind, str) else text


def _tokens(n_tokens: int | None) -> str:
    return "" if n_tokens is None else tr("{n} tokens").format(n=format_tokens(n_tokens))


def _joined(meta: Mapping[str, object], *keys: str) -> str:
    texts = [meta.get(key) for key in keys]
    named = [display_name(text) for text in texts if isinstance(text, str)]
    return ", ".join(dict.fromkeys(text for text in named if text))


def _base_model(meta: Mapping[str, object]) -> str:
    names = []
    for number in range(8):
        name = _joined(meta, f"general.base_model.{number}.name")
        if not name:
            break
        owner = _joined(meta, f"general.base_model.{number}.organization")
        names.append(f"{owner} / {name}" if owner else name)
    return ", ".join(names)


def _types(facts: ModelFacts) -> tuple[TypeShare, ...]:
    rows: dict[int, list[int]] = {}
    for tensor in facts.tensors:
        row = rows.setdefault(tensor.ggml_type, [0, 0, 0])
        row[0] += 1
        row[1] += tensor.n_bytes
        row[2] += tensor.n_bytes if "exps." in tensor.name else 0
    shares = [TypeShare(GGML_TYPES[kind].name, *row) for kind, row in rows.items()]
    return tuple(sorted(shares, key=lambda share: -share.n_bytes))


def _here(
    facts: ModelFacts,
    verdict: Verdict,
    context: ContextSettings,
    estimate: str,
    measured: str,
    labels: Mapping[str, str],
) -> list[tuple[str, str]]:
    n_ctx = min(context.n_ctx, facts.ctx_train or context.n_ctx)
    rows = [(tr("At Auto, {ctx} tokens").format(ctx=format_tokens(n_ctx)), verdict.text)]
    for device in verdict.forecast.devices:
        free = "" if device.free_bytes is None else format_bytes(device.free_bytes)
        text = format_bytes(device.used_bytes)
        if free:
            text = tr("{used} of {free} free").format(used=text, free=free)
        rows.append((display_name(labels.get(device.name) or device.name), text))
    read = token_traffic(facts, verdict.placement, verdict.forecast, n_ctx, 0)
    reads = tr("{ram} of RAM").format(ram=format_bytes(round(read.ram_bytes)))
    if read.vram_bytes:
        reads = tr("{gpu} of VRAM, {ram} of RAM; {bus} cross the bus").format(
            gpu=format_bytes(round(read.vram_bytes)),
            ram=format_bytes(round(read.ram_bytes)),
            bus=format_bytes(round(read.bus_bytes)),
        )
    rows.append((tr("Read for each token"), reads))
    if estimate:
        rows.append((tr("Expected speed"), estimate))
    rows.append((tr("Speed"), measured or tr("not measured here yet: press Tune")))
    return rows
