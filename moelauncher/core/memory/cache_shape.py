"""What each block keeps between tokens: rows of the KV cache, and recurrent state.

In: :class:`ModelFacts`. Out: :class:`CacheShape`, independent of context size and KV type.
Pure; any thread; computed once a model.

This restates, as a table by architecture, what the vendored llama.cpp reads from a file:

* head counts and lengths, shared-KV layers, recurrent layers: ``llama_model_base::load_hparams``
  in ``src/llama-model.cpp``, ``load_arch_hparams`` in ``src/models/*.cpp``;
* sliding windows: ``load_swa_pattern`` and ``llama_hparams::set_swa_pattern``;
* which cache a model gets, and which layers it covers: ``llama_model::create_memory``;
* MLA keeps K only, indexers keep one key head: ``src/llama-kv-cache.cpp``,
  ``-dsa.cpp``, ``-msa.cpp``, ``-dsv4.cpp``, ``src/llama-memory-hybrid-idx.cpp``;
* recurrent state: ``llama_hparams::n_embd_r`` and ``n_embd_s``, both F32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.files.per_model import once_per_model

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One tensor of a block's cache: ``n_values`` a cell (0: none).

    ``windowed`` rows have only the sliding window's cells. ``ratio`` tokens share a cell.
    """

    n_values: int
    windowed: bool = False
    ratio: int = 1
    head_length: int = 0  # a quantised type's block must divide it; 0: no such rule


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one block keeps. ``state_bytes`` is for one sequence."""

    index: int
    rows: tuple[CacheRow, ...]
    state_bytes: int


@dataclass(frozen=True)
class CacheShape:
    """All loaded blocks' caches; ``window`` is the sliding window in tokens, 0 for none."""

    layers: tuple[LayerCache, ...]
    window: int


#: ``llm_arch_is_recurrent``: every layer keeps state, none keeps KV.
_RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})

#: ``llm_arch_is_hybrid`` where the layers without KV heads are the recurrent ones.
_RECURRENT_WITHOUT_KV_HEADS = frozenset(
    {
        "jamba",
        "plamo2",
        "granitehybrid",
        "lfm2",
        "lfm2moe",
        "kimi-linear",
        "kimi-k3",
        "bailingmoe3",
        "glm5-next",
    }
)
#: ... where a list, or else every n-th layer with full attention, decides.
_RECURRENT_BY_INTERVAL = frozenset({"qwen3next", "qwen35", "qwen35moe", "qwen4exp", "minimax-01"})

#: ... whose feed-forward blocks keep neither.
_NEMOTRON = frozenset({"nemotron_h", "nemotron_h_moe"})

#: Sliding windows by ``load_swa_pattern``: (period, whether the first of a period is dense).
_WINDOW_PERIOD: dict[str, tuple[int, bool]] = {
    "afmoe": (4, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "exaone-moe": (4, False),
    "exaone4": (4, False),
    "gemma-embedding": (6, False),
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "laguna": (4, True),
    "llama4": (4, False),
    "mellum": (4, False),
    "modern-bert": (3, True),
    "muse-glimmer": (4, False),
    "olmo2": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
}
#: Sliding windows that the file lists layer by layer.
_WINDOW_LISTED = frozenset(
    {
        "dots3note",
        "gemma4",
        "gemma4-assistant",
        "granite_swa",
        "maple",
        "mimo2",
        "spark2_5",
        "step35",
    }
)
#: The window where the file does not say, or is not asked.
_WINDOW_FIXED = {"llama4": 8192, "smallthinker": 4096}
_WINDOW_DEFAULT = {"gemma2": 4096, "exaone4": 4096, "exaone-moe": 128}

#: Multi-head latent attention: one K row a token, no V, if the file names the MLA lengths.
_MLA = frozenset(
    {
        "deepseek2",
        "deepseek32",
        "glm-dsa",
        "kimi-linear",
        "kimi-k3",
        "bailingmoe3",
        "glm5-next",
        "hy_v4",
        "dots3note",
        "mistral4",
    }
)

#: Diffusion and embedding models have no memory between calls.
_NO_MEMORY = frozenset(
    {
        "bert",
        "jina-bert-v2",
        "jina-bert-v3",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "eurobert",
        "wavtokenizer-dec",
        "modern-bert",
        "gemma-embedding",
        "dream",
        "llada",
        "llada-moe",
        "rnd1",
    }
)

_GEMMA3N_KV_LAYERS = 20
_INTERVAL_DEFAULT = 4
#: GLM 5.2 and later share indexers between layers: full on 0, 1, 2, then every fourth.
_GLM_SHARED_INDEXER_FROM_CONTEXT = 1048576


class _Keys:
    """Reads ``<arch>.<key>`` as llama.cpp does: a number, or one a layer."""

    def __init__(self, facts: ModelFacts) -> None:
        self.arch = facts.arch
        self.n_layer_all = facts.n_layer_all
        self.n_layer = facts.n_layer
        self._metadata = facts.metadata

    def has(self, key: str) -> bool:
        return f"{self.arch}.{key}" in self._metadata

    def number(self, key: str, default: int = 0) -> int:
        value = self._metadata.get(f"{self.arch}.{key}")
        if isinstance(value, list | tuple) and value:
            value = value[0]
        return int(value) if isinstance(value, int | float) else default

    def listed(self, key: str) -> tuple[int, ...] | None:
        """The key's array, cut or padded with 0 to all layers; None when it is no array."""
        value = self._metadata.get(f"{self.arch}.{key}")
        if not isinstance(value, list | tuple):
            return None
        numbers = [int(item) for item in value][: self.n_layer_all]
        return tuple(numbers + [0] * (self.n_layer_all - len(numbers)))

    def per_layer(self, key: str, default: int) -> tuple[int, ...]:
        listed = self.listed(key)
        return (self.number(key, default),) * self.n_layer_all if listed is None else listed


@once_per_model
def cache_shape(facts: ModelFacts) -> CacheShape:
    """The shape of a model's caches; raises nothing, an unknown key counts as absent."""
    keys = _Keys(facts)
    if facts.arch in _NO_MEMORY:
        return CacheShape((), 0)
    n_embd = facts.n_embd or 0
    heads = keys.per_layer("attention.head_count", 0)
    first_heads = heads[0] if heads else 0
    kv_heads = (
        keys.per_layer("attention.head_count_kv", 0)
        if keys.has("attention.head_count_kv")
        else heads
    )
    per_head = n_embd // first_heads if first_heads else 0
    key_length = value_length = 0
    if first_heads or facts.arch == "plamo2":  # else llama.cpp does not look at the lengths
        key_length = keys.number("attention.key_length", per_head)
        value_length = keys.number("attention.value_length", per_head)
    window, windowed = _window(keys)
    recurrent = _recurrent(facts, keys, kv_heads)
    state_bytes = _state_bytes(keys, n_embd, first_heads, key_length)
    mla = facts.arch in _MLA and keys.number("attention.key_length_mla") > 0
    kv_from_start = _kv_from_start(keys)
    ff = keys.per_layer("feed_forward_length", 0) if facts.arch in _NEMOTRON else ()

    layers = []
    for index in range(keys.n_layer):
        rows: list[CacheRow] = []
        keeps_kv = index < kv_from_start and facts.arch not in _RECURRENT
        if recurrent[index] and facts.arch != "falcon-h1":
            keeps_kv = False
        if ff and ff[index]:
            keeps_kv = False
        if keeps_kv:
            short = windowed[index]
            k_head = keys.number("attention.key_length_swa", key_length) if short else key_length
            v_head = (
                keys.number("attention.value_length_swa", value_length) if short else value_length
            )
            rows.append(CacheRow(kv_heads[index] * k_head, short, head_length=k_head))
            if not mla and facts.arch != "deepseek4":
                rows.append(CacheRow(kv_heads[index] * v_head, short, head_length=v_head))
            rows += _indexer_rows(keys, index, value_length)
        state = state_bytes if recurrent[index] else 0
        if facts.arch == "deepseek4":
            extra, state = _compressed(keys, index, kv_heads[index], key_length)
            rows += extra
        layers.append(LayerCache(index, tuple(row for row in rows if row.n_values), state))
    return CacheShape(tuple(layers), window)


def _window(keys: _Keys) -> tuple[int, tuple[bool, ...]]:
    """The window in tokens and which layers have it."""
    arch = keys.arch
    none = (0, (False,) * keys.n_layer_all)
    size = keys.number("attention.sliding_window", _WINDOW_DEFAULT.get(arch, 0))
    if arch == "llama4" and keys.has("attention.sliding_window") and size == 0:
        return none
    if arch == "llama4" or size > 0:
        size = _WINDOW_FIXED.get(arch, size)
    if size <= 0 or (arch == "exaone4" and keys.n_layer != 64):
        return none
    if arch == "deepseek4":
        return size, (True,) * keys.n_layer_all
    if arch == "lfm2":
        kv_heads = keys.per_layer("attention.head_count_kv", 0)
        return size, tuple(count > 0 for count in kv_heads)
    listed = keys.listed("attention.sliding_window_pattern")
    if arch in _WINDOW_LISTED:
        return (size, tuple(bool(flag) for flag in listed)) if listed else none
    if arch not in _WINDOW_PERIOD:
        return none
    if listed is not None:
        return size, tuple(bool(flag) for flag in listed)
    period, dense_first = _WINDOW_PERIOD[arch]
    period = keys.number("attention.sliding_window_pattern", period)
    flags = []
    for index in range(keys.n_layer_all):
        if index >= keys.n_layer:
            flags.append(False)
        elif period == 0:
            flags.append(True)
        elif dense_first:
            flags.append(index % period != 0)
        else:
            flags.append(index % period < period - 1)
    return size, tuple(flags)


def _recurrent(facts: ModelFacts, keys: _Keys, kv_heads: tuple[int, ...]) -> tuple[bool, ...]:
    arch = facts.arch
    everywhere = range(keys.n_layer_all)
    if arch in _RECURRENT or arch == "falcon-h1":
        return (True,) * keys.n_layer_all
    if arch in _RECURRENT_WITHOUT_KV_HEADS:
        return tuple(kv_heads[index] == 0 for index in everywhere)
    if arch in _NEMOTRON:
        ff = keys.per_layer("feed_forward_length", 0)
        return tuple(kv_heads[index] == 0 and ff[index] == 0 for index in everywhere)
    if arch in _RECURRENT_BY_INTERVAL:
        listed = keys.listed("attention.recurrent_layers")
        if listed is not None:
            return tuple(bool(flag) for flag in listed)
        usual = 8 if keys.arch == "minimax-01" else _INTERVAL_DEFAULT
        interval = max(keys.number("full_attention_interval", usual), 1)
        return tuple((index + 1) % interval != 0 for index in everywhere)
    # An architecture newer than this table: its tensors tell.
    by_tensors = {layer.index for layer in facts.layers if layer.kind == "recurrent"}
    return tuple(index in by_tensors for index in everywhere)


def _state_bytes(keys: _Keys, n_embd: int, n_head: int, key_length: int) -> int:
    """Rolling and recurrent state of one layer and one sequence (``n_embd_r + n_embd_s``)."""
    conv = keys.number("ssm.conv_kernel")
    inner = keys.number("ssm.inner_size")
    state = keys.number("ssm.state_size")
    group = keys.number("ssm.group_count")
    kda = keys.number("kda.head_dim")
    wkv = keys.number("wkv.head_size")
    shortconv = keys.number("shortconv.l_cache")
    if wkv:
        rolling = keys.number("token_shift_count", 2) * n_embd
    elif shortconv:
        rolling = n_embd * (shortconv - 1)
    elif kda:
        rolling = 3 * (conv - 1 if conv else 3) * n_head * kda
    else:
        rolling = (conv - 1 if conv else 0) * (inner + 2 * group * state)
    if wkv:
        recurrent = n_embd * wkv
    elif kda:
        recurrent = kda * kda * n_head
    elif keys.arch == "minimax-01":
        recurrent = key_length * key_length * n_head
    else:
        recurrent = state * inner
    return 4 * (rolling + recurrent)


def _kv_from_start(keys: _Keys) -> int:
    """How many layers, from the first, have a KV cache of their own (Gemma shares the rest)."""
    if keys.arch == "gemma3n":
        return _GEMMA3N_KV_LAYERS
    if keys.arch == "gemma4":
        return keys.n_layer_all - keys.number("attention.shared_kv_layers")
    return keys.n_layer_all


def _indexer_rows(keys: _Keys, index: int, value_length: int) -> list[CacheRow]:
    """Sparse attention's own key cache: one key head on the layers that own an indexer."""
    length = keys.number("attention.indexer.key_length")
    if not length:
        return []
    types = keys.listed("attention.indexer.types")
    arch = keys.arch
    if arch == "glm-dsa":
        shared = keys.number("context_length") >= _GLM_SHARED_INDEXER_FROM_CONTEXT
        owns = bool(types[index]) if types else not shared or index < 2 or (index - 2) % 4 == 0
    elif arch in ("hy_v4", "dots3note"):
        owns = bool(types and types[index])
        owns = owns and (arch == "dots3note" or keys.number("attention.indexer.top_k") > 0)
    elif arch == "glm5-next":
        owns = bool(types[index]) if types else True
        length *= 3
    elif arch in ("deepseek32", "qwen4exp"):
        owns = True
    elif arch == "minimax-m3":
        if index < keys.number("leading_dense_block_count"):
            return []
        # This cache is not K-only: it carries a V row of one head as well.
        return [CacheRow(length), CacheRow(value_length)]
    else:
        owns = False
    return [CacheRow(length)] if owns else []


def _compressed(
    keys: _Keys, index: int, kv_heads: int, key_length: int
) -> tuple[list[CacheRow], int]:
    """DeepSeek-V4: compressed keys (a cell for 4 or 128 tokens) and the compressors' state."""
    ratios = keys.listed("attention.compress_ratios")
    ratio = ratios[index] if ratios else 0
    if ratio == 4:
        indexer = keys.number("attention.indexer.key_length")
        rows = [
            CacheRow(kv_heads * key_length, ratio=4),
            CacheRow(indexer, ratio=4),
        ]
        # kv and score, F32, 2 x ratio rows of twice the length; attention's and the indexer's
        return rows, 2 * 4 * 8 * 2 * (key_length + indexer)
    if ratio == 128:
        return [CacheRow(kv_heads * key_length, ratio=128)], 2 * 4 * 128 * key_length
    return [], 0
