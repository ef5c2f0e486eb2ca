"""Benchmarks: what is run and counted (a scripted engine), and one real run."""

from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import (
    BufferReport,
    Finished,
    GenerateFailed,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadReport,
    LoadRequest,
)
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.placement import Placement, PlacementDevice
from moelauncher.engine.bench import BenchCase, run_bench
from moelauncher.engine.llama_engine import LlamaEngine
from tests.helpers.gguf_files import write_tiny_model

MIB = 1 << 20


def placement(cpu_moe: int, *gpus: str) -> Placement:
    return Placement(
        cpu_moe=cpu_moe,
        of=4,
        which="first",
        devices=tuple(PlacementDevice(name, None) for name in gpus),
        cpu_expert_layers=tuple(range(cpu_moe)),
        n_gpu_layers=5 if gpus else 0,
        layer_devices=(0 if gpus else -1,) * 5,
        tensor_split=(),
        patterns=(),
    )


def case(cpu_moe: int = 2, n_ctx: int = 1024, ram: int | None = 7 * MIB) -> BenchCase:
    request = LoadRequest(
        Path("model.gguf"), placement(cpu_moe, "CUDA0"), ContextSettings(n_ctx=n_ctx)
    )
    return BenchCase(request, ram)


class ScriptedEngine:
    """Counts a word as a token; each reply is as fast as the next of ``rates``."""

    def __init__(self, rates, mismatches=(), load_ends=None, reply_ends=None):
        self.rates = iter(rates)
        self.mismatches = mismatches
        self.load_ends = load_ends
        self.reply_ends = reply_ends
        self.loads, self.prompts, self.lengths = [], [], []
        self.stopped = False
        self._events = []

    def load(self, request):
        self.loads.append(request.placement.cpu_moe)
        report = LoadReport(
            path=request.path,
            placement=request.placement,
            context=request.context,
            load_s=1.0,
            n_ctx=request.context.n_ctx,
            n_threads=1,
            flash_attention=True,
            buffers=(
                BufferReport("CPU_Mapped", "weights", 100 * MIB),
                BufferReport("CUDA0", "weights", 40 * MIB),
                BufferReport("CUDA0", "kv", 2 * MIB),
                BufferReport("CUDA_Host", "compute", 1 * MIB),
            ),
            template_source="model",
            mismatches=self.mismatches,
        )
        self._events.append(self.load_ends or Loaded(7, report))
        return 7

    def generate(self, request):
        self.prompts.append(request.raw_prompt)
        self.lengths.append(request.max_tokens)
        assert request.ignore_end_of_generation
        n_prompt, rate = self.count_tokens(request.raw_prompt), next(self.rates)
        stats = GenerationStats(
            "length", n_prompt, 0, request.max_tokens, 10 * rate, rate, 1.0, 2.0, 9
        )
        self._events.append(self.reply_ends or Finished(8, stats))
        return 8

    def count_tokens(self, text):
        return len(text.split())

    def drain(self, timeout_s=0.0):
        events, self._events = self._events, []
        return events

    def stop(self):
        self.stopped = True


def rows_of(engine, *cases, **settings):
    settings = {"n_prompt": 100, "n_generate": 20, "n_repeats": 3} | settings
    return list(run_bench(engine, cases or (case(),), **settings))


def test_a_row_for_the_prompt_and_one_for_the_generation():
    engine = ScriptedEngine([99.0, 30.0, 31.0, 30.5])
    prompt, generation = rows_of(engine)
    assert (prompt.test, prompt.n_tokens, prompt.depth) == ("pp", 100, 0)
    assert (generation.test, generation.n_tokens, generation.depth) == ("tg", 20, 100)
    assert prompt.repeats == (300.0, 310.0, 305.0)
    assert generation.repeats == (30.0, 31.0, 30.5)
    assert (generation.cpu_moe, generation.notes) == (2, ())


def test_what_runs_first_is_not_counted():
    engine = ScriptedEngine([1.0, 30.0, 30.0, 30.0])
    assert rows_of(engine)[1].repeats == (30.0, 30.0, 30.0)
    assert len(engine.prompts) == 4


def test_as_many_intervals_are_timed_as_tokens_are_asked_for():
    engine = ScriptedEngine([30.0] * 4)
    rows_of(engine)
    assert engine.lengths == [5, 21, 21, 21]


def test_no_prompt_begins_like_another():
    engine = ScriptedEngine([30.0] * 11)
    rows_of(engine, n_repeats=10)
    assert len({prompt.split()[0:3].__repr__() for prompt in engine.prompts}) == 11
    assert {len(prompt.split()) for prompt in engine.prompts} == {100}


def test_a_prompt_longer_than_the_text_goes_round():
    engine = ScriptedEngine([30.0] * 4)
    rows_of(engine, case(n_ctx=8192), n_prompt=5000)
    assert {len(prompt.split()) for prompt in engine.prompts} == {5000}


def test_ram_weights_are_the_plans_since_the_log_has_only_a_span():
    (row,) = rows_of(ScriptedEngine([30.0] * 4), n_generate=0)
    assert row.vram_bytes == 42 * MIB
    assert row.ram_bytes == 8 * MIB
    (row,) = rows_of(ScriptedEngine([30.0] * 4), case(ram=None), n_generate=0)
    assert row.ram_bytes is None


def test_every_placement_is_loaded_once_and_its_rows_come_when_it_is_done():
    engine = ScriptedEngine([30.0] * 8)
    rows = run_bench(engine, (case(0), case(4)), n_prompt=9, n_generate=9, n_repeats=3)
    assert next(rows).cpu_moe == 0
    assert engine.loads == [0]
    assert [row.cpu_moe for row in rows] == [0, 4, 4]
    assert engine.loads == [0, 4]


def test_steps_are_told():
    steps = []
    rows_of(ScriptedEngine([30.0] * 4), step=lambda done, total: steps.append((done, total)))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_load_that_is_not_the_plan_and_a_wide_spread_are_noted():
    engine = ScriptedEngine([30.0, 30.0, 30.0, 45.0], mismatches=("Not as planned.",))
    assert rows_of(engine)[1].notes == ("Not as planned.", "The repeats differ by 50 %.")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_repeats": 0}, "nothing to measure"),
        ({"n_prompt": 0, "n_generate": 0}, "nothing to measure"),
        ({"n_prompt": -1}, "nothing to measure"),
        ({"n_prompt": 1020}, "context of 1024 tokens does not hold 1041"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_loaded(settings, words):
    engine = ScriptedEngine([])
    with pytest.raises(LauncherError, match=words):
        rows_of(engine, **settings)
    assert engine.loads == []


def test_failures_are_raised():
    error = LauncherError("No memory.")
    with pytest.raises(LauncherError, match="No memory"):
        rows_of(ScriptedEngine([], load_ends=LoadFailed(7, error)))
    with pytest.raises(LauncherError, match="No memory"):
        rows_of(ScriptedEngine([30.0], reply_ends=GenerateFailed(8, error)))
    with pytest.raises(Cancelled):
        rows_of(ScriptedEngine([], load_ends=LoadCancelled(7)))


def test_a_cancel_stops_the_engine():
    engine = ScriptedEngine([30.0])
    with pytest.raises(Cancelled):
        rows_of(engine, cancelled=lambda: True)
    assert engine.stopped


def test_a_real_model_is_measured(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf", "moe")
    request = LoadRequest(path, placement(2), ContextSettings(n_ctx=512))
    engine = LlamaEngine()
    try:
        prompt, generation = run_bench(
            engine, [BenchCase(request, MIB)], n_prompt=64, n_generate=8, n_repeats=2
        )
    finally:
        engine.close()
    assert len(prompt.repeats) == len(generation.repeats) == 2
    assert all(rate > 0 for rate in prompt.repeats + generation.repeats)
    assert not [note for note in prompt.notes if "prompts had" in note]
    assert prompt.vram_bytes == 0
    assert prompt.ram_bytes > MIB
