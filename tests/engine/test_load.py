"""Loads: what is reported, verified, kept and refused."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter

from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.engine_protocol import (
    LoadProgress,
    LoadRequest,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.engine.cpu_threads import physical_cores
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import check_context
from tests.helpers.engines import (
    MODEL_READ,
    SETTINGS,
    ask,
    cpu_placement,
    load_request,
    run,
    smollm2_path,
)
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.tiny_shape import byte_symbols

CONTEXT_MADE = "constructing llama_context"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A tiny dense model, 2048 tokens of trained context."""
    return write_tiny_model(tmp_path / "tiny.gguf", "dense")


def test_importing_the_engine_does_not_import_llama_cpp() -> None:
    code = "import sys, moelauncher.engine.llama_engine; sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=240, check=False).returncode == 0


def test_report_tells_what_was_made(engine: LlamaEngine) -> None:
    outcome = run(engine, load_request(smollm2_path()))
    report = outcome.report
    assert report.n_ctx == 1024
    assert report.n_threads == 1
    assert report.flash_attention is not None
    assert report.template_source == "model"
    assert report.load_s > 0.0
    kv_bytes = sum(buffer.n_bytes for buffer in report.buffers if buffer.kind == "kv")
    assert kv_bytes == 1024 * 30 * 2 * 3 * 64 * 2  # cells, layers, K and V, heads, width, f16
    stages = [event.stage for event in outcome.all(LoadProgress)]
    assert list(dict.fromkeys(stages)) == ["checking", "reading", "context"]


def test_quantised_cache_is_smaller(engine: LlamaEngine) -> None:
    def kv_bytes(kv_type: str) -> int:
        settings = dataclasses.replace(SETTINGS, kv_type=kv_type)
        buffers = run(engine, load_request(smollm2_path(), settings)).report.buffers
        return sum(buffer.n_bytes for buffer in buffers if buffer.kind == "kv")

    f16, q8_0, q4_0 = kv_bytes("f16"), kv_bytes("q8_0"), kv_bytes("q4_0")
    assert q4_0 < q8_0 < f16


def test_model_without_a_template_gets_chatml(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "bare.gguf", "dense", chat_template=None)
    assert run(engine, load_request(path)).report.template_source == "chatml"
    assert run(engine, ask("hello", max_tokens=2)).stats.completion_tokens <= 2


def test_template_of_absurd_length_is_not_used(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "long.gguf", "dense", chat_template="x" * 1_000_001)
    report = run(engine, load_request(path)).report
    assert report.template_source == "chatml"
    assert any("template" in warning for warning in report.warnings)


def test_context_change_keeps_the_weights(smollm2: LlamaEngine) -> None:
    settings = dataclasses.replace(SETTINGS, n_ctx=512, kv_type="q8_0")
    outcome = run(smollm2, load_request(smollm2_path(), settings))
    assert outcome.report.n_ctx == 512
    assert outcome.lines(MODEL_READ) == []
    assert len(outcome.lines(CONTEXT_MADE)) == 1
    assert any(buffer.kind == "weights" for buffer in outcome.report.buffers)
    # French is as near as English under this KV type; which it is hangs on the processor.
    assert "France" in run(smollm2, ask("What is the capital of France?")).text


def test_change_of_threads_keeps_the_context(smollm2: LlamaEngine) -> None:
    before = run(smollm2, ask("What is the capital of France?"))
    settings = dataclasses.replace(SETTINGS, n_threads=2)
    outcome = run(smollm2, load_request(smollm2_path(), settings))
    assert outcome.report.n_threads == 2
    assert outcome.lines(MODEL_READ) == outcome.lines(CONTEXT_MADE) == []
    again = run(smollm2, ask("What is the capital of France?"))
    assert again.stats.cached_tokens == before.stats.prompt_tokens - 1


def test_changed_file_is_read_again(engine: LlamaEngine, tiny: Path) -> None:
    # Windows lets nobody change a file that is mapped.
    request = dataclasses.replace(load_request(tiny), use_mmap=False)
    run(engine, request)
    write_tiny_model(tiny, "dense", seed=2)
    assert len(run(engine, request).lines(MODEL_READ)) == 1


def test_other_mmap_setting_is_a_new_load(engine: LlamaEngine, tiny: Path) -> None:
    run(engine, load_request(tiny))
    outcome = run(engine, dataclasses.replace(load_request(tiny), use_mmap=False))
    assert len(outcome.lines(MODEL_READ)) == 1


@pytest.mark.parametrize("fits", [True, False])
def test_weights_that_stream_are_not_copied_into_ram(
    engine: LlamaEngine, tmp_path: Path, fits: bool
) -> None:
    path = write_tiny_model(tmp_path / "q4_0.gguf", "moe", matrix_type=GGMLQuantizationType.Q4_0)
    # Processors without these have no use for weights in another order.
    features = llama_cpp.llama_print_system_info().decode()
    reorders = "AVX2 = 1" in features or "NEON = 1" in features
    done = run(engine, dataclasses.replace(load_request(path), weights_fit_ram=fits))
    copied = sum(b.n_bytes for b in done.report.buffers if "REPACK" in b.device.upper())
    assert bool(copied) == (fits and reorders)


def test_default_threads_leave_a_core(engine: LlamaEngine, tiny: Path) -> None:
    report = run(engine, load_request(tiny, ContextSettings(n_ctx=256))).report
    assert report.n_threads == default_threads(physical_cores())


def test_weights_other_than_planned_are_told(engine: LlamaEngine, tiny: Path) -> None:
    request = dataclasses.replace(load_request(tiny), expected_gpu_weights={"Vulkan0": 2**20})
    (sentence,) = run(engine, request).report.mismatches
    assert "Vulkan0" in sentence
    assert "0.00" in sentence and "1.00" in sentence


def test_gpu_that_is_not_there_is_told(engine: LlamaEngine, tiny: Path) -> None:
    device = PlacementDevice("RTX9090", free_bytes=2**33, pretended=True)
    placement = dataclasses.replace(cpu_placement(4), devices=(device,), n_gpu_layers=5)
    error = run(engine, LoadRequest(tiny, placement, SETTINGS)).refusal
    assert "RTX9090" in error.message


def _truncated(folder: Path) -> Path:
    path = write_tiny_model(folder / "cut.gguf", "dense")
    path.write_bytes(path.read_bytes()[:-4096])
    return path


def _folder(folder: Path) -> Path:
    path = folder / "folder.gguf"
    path.mkdir()
    return path


def _empty(folder: Path) -> Path:
    path = folder / "empty.gguf"
    path.touch()
    return path


@pytest.mark.parametrize("make", [_truncated, _folder, _empty, lambda folder: folder / "gone.gguf"])
def test_bad_file_is_a_sentence_and_the_engine_goes_on(
    engine: LlamaEngine, tmp_path: Path, tiny: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path)
    error = run(engine, load_request(path)).refusal
    assert path.name in error.message
    assert error.hint
    assert run(engine, load_request(tiny)).report.path == tiny


@pytest.mark.parametrize(
    "settings",
    [
        ContextSettings(n_ctx=0),
        ContextSettings(n_ctx=256, n_ubatch=0),
        ContextSettings(n_ctx=256, kv_type="q3_k"),
    ],
)
def test_context_that_the_model_cannot_have(
    engine: LlamaEngine, tiny: Path, settings: ContextSettings
) -> None:
    error = run(engine, load_request(tiny, settings)).refusal
    assert error.message and error.hint
    assert engine.count_tokens("nothing is loaded") is None
    assert run(engine, load_request(tiny)).report.path == tiny


def test_model_that_writes_no_text(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_embedding_model(tmp_path / "bert.gguf")
    error = run(engine, load_request(path, ContextSettings(n_ctx=64))).refusal
    assert "bert.gguf is not a model that writes text" in error.message


def write_embedding_model(path: Path) -> Path:
    """A tiny BERT: it has no memory of tokens, and nothing to draw the next one from."""
    width, n_vocab = 64, 256
    writer = GGUFWriter(str(path), "bert")
    for key in ("context_length", "embedding_length", "feed_forward_length"):
        writer.add_uint32(f"bert.{key}", width)
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-5)
    writer.add_causal_attention(False)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_type_count(2)
    writer.add_token_list(byte_symbols())
    writer.add_token_merges(["t h"])
    writer.add_tensor("token_embd.weight", np.ones((n_vocab, width), np.float32))
    writer.add_tensor("token_types.weight", np.ones((2, width), np.float32))
    writer.add_tensor("position_embd.weight", np.ones((width, width), np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones((width, width), np.float32))
        writer.add_tensor(f"blk.0.{name}.bias", np.ones(width, np.float32))
    for name in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
        writer.add_tensor(f"{name}.bias", np.ones(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_beyond_the_training_length_a_warning_names_it(engine: LlamaEngine, tiny: Path) -> None:
    report = run(engine, load_request(tiny, ContextSettings(n_ctx=4096))).report
    assert report.n_ctx == 4096
    assert any("n_ctx_train (2048)" in warning for warning in report.warnings)


def test_learned_positions_end_where_training_did():
    check_context(ContextSettings(n_ctx=1024), 1024)
    check_context(ContextSettings(n_ctx=1 << 20), None)
    with pytest.raises(LauncherError, match="can look back 1024 tokens"):
        check_context(ContextSettings(n_ctx=1025), 1024)
