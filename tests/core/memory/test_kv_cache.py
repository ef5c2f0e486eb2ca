"""KV cache and recurrent state against published logs and the vendored formulas."""

from __future__ import annotations

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.cache_shape import cache_shape
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.kv_cache import (
    kv_bytes,
    kv_bytes_per_layer,
    kv_type_problem,
    recurrent_bytes_per_layer,
    window_cells,
)
from tests.helpers.planned_models import MIB, made_facts, truth_facts


def _mib(n_bytes: int) -> float:
    return n_bytes / MIB


@pytest.mark.parametrize(
    ("name", "n_ctx", "kv_type", "logged_mib"),
    [
        ("gpt-oss-20b-mxfp4", 131072, "f16", 3072.00 + 18.00),
        ("qwen3-coder-30b-a3b-q8_0", 65536, "f16", 6144.00),
        ("qwen3-30b-a3b-q4_k_m", 16384, "f16", 384.00 + 1152.00),
        ("deepseek-v2-lite-q4_0", 4096, "f16", 1080.00),
        ("glm-4.5-air-q4_k", 131072, "f16", 23552.00),  # block 46 keeps none
        ("qwen3.5-35b-a3b-20.61gib", 4096, "f16", 80.00),
        ("qwen3.5-35b-a3b-20.61gib", 262144, "q4_0", 1440.00),
    ],
)
def test_published_kv_sizes(name: str, n_ctx: int, kv_type: str, logged_mib: float) -> None:
    context = ContextSettings(n_ctx=n_ctx, kv_type=kv_type)
    assert _mib(kv_bytes(truth_facts(name), context)) == pytest.approx(logged_mib, abs=0.01)


def test_published_recurrent_state() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    assert _mib(sum(recurrent_bytes_per_layer(facts))) == pytest.approx(62.81, abs=0.01)
    assert _mib(sum(recurrent_bytes_per_layer(facts, 4))) == pytest.approx(251.25, abs=0.01)


def test_glm_air_keeps_no_kv_for_its_mtp_block() -> None:
    """The published log: 46 of 47 blocks, 131072 cells, 23552 MiB."""
    facts = made_facts(
        [(MIB, MIB)] * 47,
        arch="glm4moe",
        n_not_loaded=1,
        keys={
            "embedding_length": 4096,
            "attention.head_count": 96,
            "attention.head_count_kv": 8,
            "attention.key_length": 128,
            "attention.value_length": 128,
            "nextn_predict_layers": 1,
        },
    )
    per_layer = kv_bytes_per_layer(facts, ContextSettings(n_ctx=131072))
    assert len(per_layer) == 47
    assert per_layer[46] == 0
    assert _mib(sum(per_layer)) == 23552.0


def test_only_the_attention_layers_of_a_hybrid_have_kv_and_only_the_others_state() -> None:
    facts = truth_facts("qwen3.5-35b-a3b-20.61gib")
    kv = kv_bytes_per_layer(facts, ContextSettings())
    state = recurrent_bytes_per_layer(facts)
    assert [index for index, size in enumerate(kv) if size] == list(range(3, 40, 4))
    assert all(bool(a) != bool(b) for a, b in zip(kv, state, strict=True))


@pytest.mark.parametrize(
    ("n_ctx", "n_ubatch", "cells"),
    [(131072, 512, 768), (131072, 128, 256), (512, 512, 512), (300, 512, 512), (4096, 2048, 2304)],
)
def test_the_windows_cells_are_window_and_ubatch_rounded_up(
    n_ctx: int, n_ubatch: int, cells: int
) -> None:
    assert window_cells(128, ContextSettings(n_ctx=n_ctx, n_ubatch=n_ubatch)) == cells


def _attention(arch: str, n_layer: int, **more: object) -> dict[str, object]:
    return {
        "embedding_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 32,
        "attention.value_length": 32,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def _shape(arch: str, n_layer: int, **more: object):  # type: ignore[no-untyped-def]
    keys = _attention(arch, n_layer, **more)
    return cache_shape(made_facts([(MIB, MIB)] * n_layer, arch=arch, keys=keys))


def _windowed(arch: str, n_layer: int = 8, **more: object) -> list[int]:
    """The layers whose rows have only the window's cells."""
    shape = _shape(arch, n_layer, **more)
    return [layer.index for layer in shape.layers if any(row.windowed for row in layer.rows)]


def test_sliding_windows_by_architecture() -> None:
    window = {"attention__sliding_window": 64}
    assert _windowed("gpt-oss", **window) == [0, 2, 4, 6]
    assert _windowed("gemma3", **window) == [0, 1, 2, 3, 4, 6, 7]
    assert _windowed("cohere2moe", **window) == [1, 2, 3, 5, 6, 7]
    assert _windowed("gpt-oss", **window, attention__sliding_window_pattern=4) == [
        0, 1, 2, 4, 5, 6,
    ]  # fmt: skip
    listed = [True, False] * 4
    assert _windowed("mimo2", **window, attention__sliding_window_pattern=listed) == [0, 2, 4, 6]
    assert _windowed("phi3", **window) == []
    assert _windowed("qwen3moe", **window) == []


def test_windows_that_the_file_does_not_decide() -> None:
    assert _shape("llama4", 4).window == 8192
    assert _shape("llama4", 4, attention__sliding_window=0).window == 0
    assert _shape("smallthinker", 4, attention__sliding_window=64).window == 4096
    assert _shape("gemma2", 4).window == 4096
    assert _shape("exaone4", 30).window == 0
    assert _shape("exaone4", 64).window == 4096


def test_gemma_layers_that_share_the_kv_of_earlier_ones() -> None:
    shape = _shape("gemma4", 8, attention__shared_kv_layers=3)
    assert [layer.index for layer in shape.layers if layer.rows] == [0, 1, 2, 3, 4]
    shape = _shape("gemma3n", 30, attention__sliding_window=64)
    assert [layer.index for layer in shape.layers if layer.rows] == list(range(20))


def test_other_head_lengths_in_sliding_layers() -> None:
    pattern = [True, True, False, True]
    shape = _shape(
        "gemma4",
        4,
        attention__sliding_window=64,
        attention__sliding_window_pattern=pattern,
        attention__key_length_swa=16,
        attention__value_length_swa=16,
    )
    assert [[row.n_values for row in layer.rows] for layer in shape.layers] == [
        [32, 32],
        [32, 32],
        [64, 64],
        [32, 32],
    ]


def test_latent_attention_keeps_one_row_and_old_files_full_heads() -> None:
    keys = {
        "attention__head_count_kv": 1,
        "attention__key_length": 576,
        "attention__value_length": 512,
    }
    new = _shape("deepseek2", 2, **keys, attention__key_length_mla=192)
    assert [row.n_values for row in new.layers[0].rows] == [576]
    old = _shape(
        "deepseek2",
        2,
        attention__head_count_kv=16,
        attention__key_length=192,
        attention__value_length=128,
    )
    assert [row.n_values for row in old.layers[0].rows] == [3072, 2048]


def test_head_counts_layer_by_layer_where_0_marks_a_recurrent_layer() -> None:
    shape = _shape("lfm2moe", 4, attention__head_count_kv=[0, 2, 0, 4], shortconv__l_cache=3)
    assert [[row.n_values for row in layer.rows] for layer in shape.layers] == [
        [],
        [64, 64],
        [],
        [128, 128],
    ]
    assert [layer.state_bytes for layer in shape.layers] == [2 * 128 * 4, 0, 2 * 128 * 4, 0]


def test_recurrent_state_by_kind() -> None:
    ssm = {
        "ssm__conv_kernel": 4,
        "ssm__inner_size": 256,
        "ssm__state_size": 16,
        "ssm__group_count": 1,
    }
    mamba = 4 * (3 * (256 + 2 * 16) + 16 * 256)
    assert {layer.state_bytes for layer in _shape("mamba2", 3, **ssm).layers} == {mamba}
    assert not any(layer.rows for layer in _shape("mamba2", 3, **ssm).layers)
    rwkv = _shape("rwkv7", 2, wkv__head_size=64)
    assert rwkv.layers[0].state_bytes == 4 * (2 * 128 + 128 * 64)
    kda = _shape(
        "kimi-linear",
        2,
        attention__head_count_kv=[0, 4],
        ssm__conv_kernel=4,
        kda__head_dim=32,
        attention__key_length_mla=48,
    )
    assert kda.layers[0].state_bytes == 4 * (3 * 3 * 4 * 32 + 32 * 32 * 4)
    assert [row.n_values for row in kda.layers[1].rows] == [4 * 32]
    falcon = _shape("falcon-h1", 2, **ssm)
    assert all(layer.rows and layer.state_bytes == mamba for layer in falcon.layers)


def test_nemotron_blocks_that_only_feed_forward_keep_nothing() -> None:
    shape = _shape(
        "nemotron_h_moe",
        3,
        attention__head_count_kv=[0, 0, 2],
        feed_forward_length=[0, 512, 0],
        ssm__conv_kernel=4,
        ssm__inner_size=256,
        ssm__state_size=16,
        ssm__group_count=1,
    )
    kept = [(bool(layer.rows), bool(layer.state_bytes)) for layer in shape.layers]
    assert kept == [(False, True), (False, False), (True, False)]


def test_an_unknown_architecture_goes_by_its_tensors() -> None:
    facts = made_facts(
        [(MIB, MIB)] * 3,
        arch="brand-new",
        keys=_attention("brand-new", 3),
        kinds={0: "recurrent", 1: "recurrent"},
    )
    assert [bool(layer.rows) for layer in cache_shape(facts).layers] == [False, False, True]


def test_indexers_keep_their_own_keys() -> None:
    keys = {
        "attention__head_count_kv": 1,
        "attention__key_length": 576,
        "attention__key_length_mla": 192,
        "attention__indexer__key_length": 128,
    }
    old = _shape("glm-dsa", 8, **keys, context_length=131072)
    assert [len(layer.rows) for layer in old.layers] == [2] * 8
    new = _shape("glm-dsa", 8, **keys, context_length=1048576)
    assert [len(layer.rows) for layer in new.layers] == [2, 2, 2, 1, 1, 1, 2, 1]
    listed = _shape("glm-dsa", 4, **keys, attention__indexer__types=[1, 0, 0, 1])
    assert [len(layer.rows) for layer in listed.layers] == [2, 1, 1, 2]


def test_compressed_keys_of_deepseek_v4() -> None:
    facts = made_facts(
        [(MIB, MIB)] * 3,
        arch="deepseek4",
        keys=_attention("deepseek4", 3)
        | {
            "attention.head_count_kv": 1,
            "attention.key_length": 512,
            "attention.sliding_window": 128,
            "attention.indexer.key_length": 128,
            "attention.compress_ratios": [0, 4, 128],
        },
    )
    kv = kv_bytes_per_layer(facts, ContextSettings(n_ctx=65536, n_ubatch=512))
    window = 768 * 512 * 2
    assert kv == (window, window + 16384 * (512 + 128) * 2, window + 512 * 512 * 2)
    # kv and score, F32: 8 rows of 2 x 512 and of 2 x 128; 128 rows of 512
    assert recurrent_bytes_per_layer(facts) == (0, 2 * 4 * 8 * 2 * (512 + 128), 2 * 4 * 128 * 512)


def test_models_without_a_memory() -> None:
    assert _shape("llada-moe", 3).layers == ()
    assert cache_shape(made_facts([], arch="qwen3moe")).layers == ()


@pytest.mark.parametrize(
    ("kv_type", "value_bytes"), [("f32", 4), ("f16", 2), ("q8_0", 34 / 32), ("q4_0", 18 / 32)]
)
def test_quantised_kv(kv_type: str, value_bytes: float) -> None:
    facts = made_facts([(MIB, MIB)] * 2, keys=_attention("qwen3moe", 2))
    context = ContextSettings(n_ctx=1000, kv_type=kv_type)
    # 1000 is rounded up to 1024 cells; two layers, K and V of two heads of 32
    assert kv_bytes(facts, context) == 2 * 1024 * (64 + 64) * value_bytes


def test_kv_types_that_a_model_cannot_have() -> None:
    facts = made_facts([(MIB, MIB)] * 2, keys=_attention("qwen3moe", 2))
    assert kv_type_problem(facts, "q8_0") == ""
    odd = made_facts(
        [(MIB, MIB)] * 2,
        keys=_attention("qwen3moe", 2) | {"attention.key_length": 80, "attention.value_length": 80},
    )
    assert kv_type_problem(odd, "f16") == ""
    assert "80" in kv_type_problem(odd, "q8_0")
    grok = made_facts([(MIB, MIB)] * 2, arch="grok", keys=_attention("grok", 2))
    assert kv_type_problem(grok, "f16") == ""
    assert "flash attention" in kv_type_problem(grok, "q8_0")
    assert "q9_9" in kv_type_problem(facts, "q9_9")
    with pytest.raises(LauncherError, match="q9_9"):
        kv_bytes(facts, ContextSettings(kv_type="q9_9"))


def test_the_shape_is_computed_once_a_model() -> None:
    facts = made_facts([(MIB, MIB)] * 2, keys=_attention("qwen3moe", 2))
    assert cache_shape(facts) is cache_shape(facts)
