"""Bytes of KV cache and recurrent state, by the formula, for any context size and KV type.

In: :class:`ModelFacts`, :class:`ContextSettings`. Out: bytes per block. Pure; any thread.
llama.cpp's dry run says the same numbers; the formula answers at once, and per layer.

Sources in the vendored llama.cpp: cells and row sizes ``src/llama-kv-cache.cpp``, the
window's cells ``src/llama-kv-cache-iswa.cpp``, padding of the context
``src/llama-context.cpp`` (``GGML_PAD(n_ctx, 256)``), refusals of a KV type
``llama_init_from_model``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.cache_shape import CacheRow, cache_shape
from moelauncher.core.translate import tr

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts
    from moelauncher.core.memory.context_settings import ContextSettings

#: Values a block and bytes a block of the KV types (``ggml_type_traits``).
KV_TYPES: dict[str, tuple[int, int]] = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "q8_0": (32, 34),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "iq4_nl": (32, 18),
}

CELL_PADDING = 256

#: ``llama_init_from_model`` switches flash attention off for these.
_WITHOUT_FLASH_ATTENTION = frozenset({"grok"})


def padded(cells: int) -> int:
    """Cells as llama.cpp counts them: rounded up to 256."""
    return -(-cells // CELL_PADDING) * CELL_PADDING


def window_cells(window: int, context: ContextSettings, n_sequences: int = 1) -> int:
    """Cells of the second cache that sliding-window layers get (``swa_full`` off)."""
    n_ubatch = min(context.n_ubatch, context.n_ctx)
    return padded(min(padded(context.n_ctx), window * n_sequences + n_ubatch))


def kv_bytes_per_layer(facts: ModelFacts, context: ContextSettings) -> tuple[int, ...]:
    """KV bytes of every block (``n_layer_all`` of them; 0 where a block keeps none).

    Raises LauncherError for a KV type that llama.cpp does not have.
    """
    shape = cache_shape(facts)
    if context.kv_type not in KV_TYPES:
        raise LauncherError(kv_type_problem(facts, context.kv_type))
    block, size = KV_TYPES[context.kv_type]
    cells = padded(context.n_ctx)
    short = window_cells(shape.window, context) if shape.window else 0
    result = [0] * facts.n_layer_all
    for layer in shape.layers:
        result[layer.index] = sum(
            _row_cells(row, cells, short) * (row.n_values // block * size) for row in layer.rows
        )
    return tuple(result)


def _row_cells(row: CacheRow, cells: int, short: int) -> int:
    if row.windowed:
        return short
    return cells if row.ratio == 1 else padded(max(1, -(-cells // row.ratio)))


def recurrent_bytes_per_layer(facts: ModelFacts, n_sequences: int = 1) -> tuple[int, ...]:
    """Recurrent state of every block (``n_layer_all`` of them), for so many sequences."""
    result = [0] * facts.n_layer_all
    for layer in cache_shape(facts).layers:
        result[layer.index] = layer.state_bytes * n_sequences
    return tuple(result)


def kv_bytes(facts: ModelFacts, context: ContextSettings) -> int:
    """KV bytes of the whole model."""
    return sum(kv_bytes_per_layer(facts, context))


def kv_type_problem(facts: ModelFacts, kv_type: str) -> str:
    """Why llama.cpp would refuse this KV type for the model, as a sentence; else ""."""
    if kv_type not in KV_TYPES:
        return tr("The KV cache cannot be of type {kv_type}. Choose one of {types}.").format(
            kv_type=kv_type, types=", ".join(KV_TYPES)
        )
    block = KV_TYPES[kv_type][0]
    if block > 1 and facts.arch in _WITHOUT_FLASH_ATTENTION:
        return tr(
            "This model cannot have a {kv_type} KV cache: it is computed without flash attention,"
            " which quantised caches need. Choose f16."
        ).format(kv_type=kv_type)
    for layer in cache_shape(facts).layers:
        for row in layer.rows:
            if row.head_length % block or row.n_values % block:
                return tr(
                    "This model cannot have a {kv_type} KV cache: its heads hold {length} values,"
                    " which is no multiple of {block}. Choose f16."
                ).format(kv_type=kv_type, length=row.head_length or row.n_values, block=block)
    return ""
