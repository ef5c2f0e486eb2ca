"""What CUDA adds to the bytes of a tensor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moelauncher.core.files.gguf_header import TensorInfo
from moelauncher.core.memory.layer_bytes import RowPadding, padding_bytes, pads_rows, row_padding
from tests.helpers.planned_models import MIB, made_facts, truth_facts


def test_rows_of_quantised_tensors_are_rounded_up_to_512_values() -> None:
    rows = 2880 * 10
    # 2880 values leave 320 over 512: 192 more of 34 bytes for 32, then 128-byte alignment
    quantised = TensorInfo("blk.0.attn_q.weight", (2880, 10), 8, 0, rows // 32 * 34, rows)
    assert padding_bytes(quantised) == -(-(rows // 32 * 34 + 204) // 128) * 128 - rows // 32 * 34
    whole = TensorInfo("blk.0.attn_q.weight", (512, 4), 8, 0, 2176, 2048)
    assert padding_bytes(whole) == 0
    plain = TensorInfo("blk.0.attn_sinks.weight", (65,), 0, 0, 260, 65)
    assert padding_bytes(plain) == 384 - 260


def test_only_where_the_backend_does_it() -> None:
    assert pads_rows("CUDA0")
    assert pads_rows("ROCm1")
    assert not pads_rows("Vulkan0")
    assert not pads_rows("RTX4070")


def test_published_models_take_a_little_more_on_cuda() -> None:
    padding = row_padding(truth_facts("gpt-oss-20b-mxfp4"))
    assert len(padding.dense) == len(padding.experts) == 24
    # The log of a CUDA load says 1242.03; the tensors alone are 1242.01.
    assert (sum(padding.dense) + padding.output) / MIB == pytest.approx(0.017, abs=0.001)
    even = row_padding(truth_facts("qwen3-30b-a3b-q4_k_m"))
    assert sum(even.dense) == even.output == 0


@pytest.mark.parametrize(("tied", "output"), [(False, 2), (True, 3)])
def test_the_output_layer_pads_its_own_tensors_and_a_tied_embedding(
    tied: bool, output: int
) -> None:
    names = (
        "token_embd.weight",
        "output_norm.weight",
        "output.weight",
        "blk.0.attn_norm.weight",
        "blk.0.ffn_up_exps.bias",
        "blk.9.of_no_loaded_block",
    )
    # 65 floats: 124 bytes more make whole 128s of them.
    tensors = tuple(TensorInfo(name, (65,), 0, 0, 260, 65) for name in names)
    facts = replace(made_facts([(MIB, MIB)]), tensors=tensors, tied_output=tied)
    assert row_padding(facts) == RowPadding((124,), (124,), output * 124)
