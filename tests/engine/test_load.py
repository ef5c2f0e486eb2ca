"""Loads: what is reported, verified, kept, refused, cancelled and given back."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter

from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.engine_protocol import (
    LoadCancelled,
    LoadFailed,
    LoadProgress,
    LoadRequest,
    Unloaded,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.engine import resident_model
from moelauncher.engine.cpu_threads import physical_cores
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import check_context
from tests.helpers.engines import (
    SETTINGS,
    Outcome,
    ask,
    cpu_placement,
    load_request,
    run,
    smollm2_path,
    wait_for,
)
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.tiny_shape import byte_symbols

MODEL_READ = "loaded meta data"
CONTEXT_MADE = "constructing llama_context"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A tiny dense model, 2048 tokens of trained context."""
    return write_tiny_model(tmp_path / "tiny.gguf", "dense")


def failure(outcome: Outcome) -> LauncherError:
    assert isinstance(outcome.end, LoadFailed), outcome.end
    return outcome.end.error


def test_importing_the_engine_does_not_import_llama_cpp() -> None:
    code = "import sys, moelauncher.engine.llama_engine; sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


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
    done = run(engine, dataclasses.replace(load_request(path), weights_fit_ram=fits))
    copied = sum(b.n_bytes for b in done.report.buffers if "REPACK" in b.device.upper())
    assert bool(copied) == fits


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
    error = failure(run(engine, LoadRequest(tiny, placement, SETTINGS)))
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
    error = failure(run(engine, load_request(path)))
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
    error = failure(run(engine, load_request(tiny, settings)))
    assert error.message and error.hint
    assert engine.count_tokens("nothing is loaded") is None
    assert run(engine, load_request(tiny)).report.path == tiny


def test_model_that_writes_no_text(engine: LlamaEngine, tmp_path: Path) -> None:
    path = write_embedding_model(tmp_path / "bert.gguf")
    error = failure(run(engine, load_request(path, ContextSettings(n_ctx=64))))
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


def test_context_change_is_accepted_anew_and_threads_are_not(tiny: Path) -> None:
    asked: list[ContextSettings] = []
    engine = LlamaEngine(accept=lambda request, cancelled: asked.append(request.context))
    larger = dataclasses.replace(SETTINGS, n_ctx=1536)
    try:
        for settings in (SETTINGS, larger, dataclasses.replace(larger, n_threads=2)):
            assert run(engine, load_request(tiny, settings)).report.context == settings
    finally:
        engine.close()
    assert asked == [SETTINGS, larger]


def test_cancelled_load_leaves_nothing_loaded(tiny: Path) -> None:
    cancels = [True, False]

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> None:
        if cancels.pop(0):
            engine.stop()

    engine = LlamaEngine(accept=accept)
    try:
        outcome = run(engine, load_request(tiny))
        assert isinstance(outcome.end, LoadCancelled)
        assert outcome.lines(MODEL_READ) == []
        assert engine.count_tokens("nothing is loaded") is None
        assert run(engine, load_request(tiny)).report.path == tiny
    finally:
        engine.close()


def test_load_cancelled_while_it_reads(
    engine: LlamaEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_in_the_middle(fraction: float) -> None:
        if fraction > 0.3:
            engine.stop()

    def load_weights(native, request, tell, cancelled, lines):  # type: ignore[no-untyped-def]
        return real(native, request, stop_in_the_middle, cancelled, lines)

    real = resident_model.load_weights
    monkeypatch.setattr(resident_model, "load_weights", load_weights)
    request = dataclasses.replace(load_request(smollm2_path()), use_mmap=False)
    assert isinstance(run(engine, request).end, LoadCancelled)


def test_nothing_is_loaded_before_it_was_accepted(tiny: Path) -> None:
    asked = []

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> None:
        assert not cancelled()
        asked.append(request.path)
        raise LauncherError("The file is broken.", "Choose another one.")

    engine = LlamaEngine(accept=accept)
    try:
        outcome = run(engine, load_request(tiny))
    finally:
        engine.close()
    assert asked == [tiny]
    assert failure(outcome).message == "The file is broken."
    assert outcome.lines(MODEL_READ) == []


def test_cancel_while_the_file_is_checked(tiny: Path) -> None:
    checking = threading.Event()

    def accept(request: LoadRequest, cancelled: Callable[[], bool]) -> None:
        checking.set()
        while not cancelled():
            threading.Event().wait(0.001)
        raise Cancelled

    engine = LlamaEngine(accept=accept)
    try:
        number = engine.load(load_request(tiny))
        assert checking.wait(30.0)
        engine.stop()
        assert isinstance(wait_for(engine, number).end, LoadCancelled)
    finally:
        engine.close()


def test_unload_ends_with_unloaded_also_when_nothing_is(smollm2: LlamaEngine) -> None:
    assert smollm2.count_tokens("hello world") == 2
    assert isinstance(run(smollm2, None).end, Unloaded)
    assert smollm2.count_tokens("hello world") is None
    assert isinstance(run(smollm2, None).end, Unloaded)


def test_close_in_the_middle_of_a_load_leaves_no_thread() -> None:
    engine = LlamaEngine()
    engine.load(load_request(smollm2_path()))
    engine.close()
    engine.close()
    assert not any(thread.name == "llama-engine" for thread in threading.enumerate())


def test_notify_comes_once_until_events_are_fetched(tiny: Path) -> None:
    rung = threading.Event()
    calls = []

    def notify() -> None:
        calls.append(threading.current_thread().name)
        rung.set()

    engine = LlamaEngine(notify=notify)
    try:
        engine.unload()
        assert rung.wait(30.0)
        engine.close()
        assert calls == ["llama-engine"]
        assert [type(event) for event in engine.drain()] == [Unloaded]
        assert engine.drain() == []
    finally:
        engine.close()


def test_twenty_loads_give_the_memory_back() -> None:
    code = """
import psutil
from tests.helpers.engines import ask, load_request, run, smollm2_path
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_model import check_context

engine = LlamaEngine()
try:
    sizes = []
    for _ in range(24):
        run(engine, load_request(smollm2_path())).report
        run(engine, ask("Hello", max_tokens=2)).stats
        run(engine, None)
        sizes.append(psutil.Process().memory_info().rss)
finally:
    engine.close()
print(*sizes[3:])
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    sizes = [int(size) for size in done.stdout.split()]
    grown = [later - earlier for earlier, later in itertools.pairwise(sizes)]
    # A leak is in each load. The allocator takes its memory in steps, one or two in twenty loads,
    # and keeps it: seen to stay there over seventy.
    assert statistics.median(grown) * len(grown) < sizes[0] * 0.02
    assert sizes[-1] < sizes[0] * 1.06


def test_beyond_the_training_length_a_warning_names_it(engine: LlamaEngine, tiny: Path) -> None:
    report = run(engine, load_request(tiny, ContextSettings(n_ctx=4096))).report
    assert report.n_ctx == 4096
    assert any("n_ctx_train (2048)" in warning for warning in report.warnings)


def test_learned_positions_end_where_training_did():
    check_context(ContextSettings(n_ctx=1024), 1024)
    check_context(ContextSettings(n_ctx=1 << 20), None)
    with pytest.raises(LauncherError, match="can look back 1024 tokens"):
        check_context(ContextSettings(n_ctx=1025), 1024)
