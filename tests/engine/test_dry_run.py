"""Dry runs in the real child: true sizes, reasons of refusals, and files that end a process."""

import os

import pytest

from moelauncher.core.engine_protocol import LoadFailed, LoadRequest
from moelauncher.core.errors import Cancelled, LauncherError, SettingsRefused
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.kv_cache import kv_bytes
from moelauncher.core.memory.placement import Placement, PlacementDevice
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import (
    describe_build,
    describe_devices,
    dry_run,
    dry_run_or_problem,
    make_acceptor,
    result_of,
)
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.load_log import CacheReport, LoadLog
from tests.helpers.edited_gguf import DELETED, edit_gguf
from tests.helpers.engines import cpu_placement, run
from tests.helpers.gguf_files import RUNNABLE_KINDS, write_tiny_model

CONTEXT = ContextSettings(n_ctx=512, n_ubatch=64, n_threads=1)
#: The log rounds each buffer to 0.01 MiB.
ROUNDING_BYTES = 3 * round(0.005 * (1 << 20)) + 1


class CountingChild(Child):
    """A real child that remembers what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def request(self, operation, *arguments, **settings):
        self.asked.append(operation)
        return super().request(operation, *arguments, **settings)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {kind: write_tiny_model(folder / f"{kind}.gguf", kind) for kind in RUNNABLE_KINDS}


@pytest.fixture
def child():
    child = CountingChild()
    yield child
    child.close()


@pytest.fixture
def moe(models):
    return models["moe"]


def gpu_placement(*gpus: PlacementDevice) -> Placement:
    return Placement(0, 4, "first", gpus, (), 5, (0,) * 5, (), ())


def reported(report, *kinds):
    return sum(buffer.n_bytes for buffer in report.buffers if buffer.kind in kinds)


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_sizes_are_those_of_the_real_load(child, engine, models, kv_type):
    context = ContextSettings(n_ctx=512, n_ubatch=64, n_threads=1, kv_type=kv_type)
    for kind, path in models.items():
        expected = dry_run_or_problem(child, path, cpu_placement(8), context)
        real = run(engine, LoadRequest(path, cpu_placement(8), context))
        if isinstance(real.end, LoadFailed):  # heads too short for a quantised cache
            assert expected.problem, kind
            continue
        for field, kinds in (
            (expected.kv_bytes, ("kv",)),
            (expected.recurrent_bytes, ("recurrent",)),
            (expected.compute_bytes, ("compute",)),
        ):
            assert set(field) <= {"RAM"}
            difference = field.get("RAM", 0) - reported(real.report, *kinds)
            assert abs(difference) <= ROUNDING_BYTES, (kind, kinds)
        assert expected.output_bytes == reported(real.report, "output")
        assert expected.n_ctx == real.report.n_ctx
        assert expected.flash_attention == real.report.flash_attention


def test_a_longer_context_takes_more(child, moe):
    short = dry_run(child, moe, cpu_placement(4), CONTEXT)
    long = dry_run(child, moe, cpu_placement(4), ContextSettings(n_ctx=2048, n_ubatch=64))
    assert long.kv_bytes["RAM"] > 3 * short.kv_bytes["RAM"]


def test_the_same_question_is_asked_once(child, moe):
    first = dry_run(child, moe, cpu_placement(4), CONTEXT)
    assert dry_run(child, moe, cpu_placement(4), CONTEXT) == first
    assert child.asked == ["dry_run"]
    dry_run(child, moe, cpu_placement(4), ContextSettings(n_ctx=256))
    assert child.asked == ["dry_run"] * 2


def test_a_refusal_is_remembered_too_until_the_file_changes(child, moe, tmp_path):
    path = edit_gguf(moe, tmp_path / "edited.gguf", {".block_count": 0})
    for _ in range(2):
        with pytest.raises(LauncherError):
            dry_run(child, path, cpu_placement(4), CONTEXT)
    assert child.asked == ["dry_run"] * 2, "with these settings, and plainly"
    path.write_bytes(moe.read_bytes())
    os.utime(path, ns=(1, 1))
    dry_run(child, path, cpu_placement(4), CONTEXT)
    assert child.asked == ["dry_run"] * 3


def test_free_memory_of_a_device_is_not_part_of_the_question(child, moe):
    for free_bytes in (1 << 30, 2 << 30):
        with pytest.raises(LauncherError, match="no device named CUDA7"):
            dry_run(child, moe, gpu_placement(PlacementDevice("CUDA7", free_bytes)), CONTEXT)
    assert child.asked == ["dry_run"] * 2, "with these settings, and plainly"


def test_pretended_gpus_never_reach_the_child(child, moe):
    pretended = PlacementDevice("RTX4070", 12 << 30, pretended=True)
    result = dry_run(child, moe, gpu_placement(pretended), CONTEXT)
    assert result.problem
    assert not result.kv_bytes
    assert child.asked == []


def test_cancel(child, moe):
    with pytest.raises(Cancelled):
        dry_run(child, moe, cpu_placement(4), CONTEXT, cancelled=lambda: True)
    assert dry_run(child, moe, cpu_placement(4), CONTEXT).n_ctx == 512


REFUSALS = {
    "unknown architecture": (
        {"general.architecture": "nonsense"},
        "unknown model architecture: 'nonsense'",
    ),
    "no architecture": ({"general.architecture": DELETED}, "unknown model architecture"),
    "a picture encoder": ({"general.architecture": "clip"}, "cannot be used as main model"),
    "wrong type": ({".block_count": "four"}, "wrong type str but expected type u32"),
    "a key missing": ({".embedding_length": DELETED}, "key not found"),
    "another width": ({".embedding_length": 96}, "wrong shape"),
}


@pytest.mark.parametrize("edit", REFUSALS)
def test_a_refusal_has_llama_cpps_reason(child, moe, tmp_path, edit):
    changes, reason = REFUSALS[edit]
    path = edit_gguf(moe, tmp_path / "edited.gguf", changes)
    with pytest.raises(LauncherError) as error:
        dry_run(child, path, cpu_placement(4), CONTEXT)
    assert error.value.message.startswith("llama.cpp refused this file: ")
    assert reason in error.value.message
    assert error.value.hint
    assert dry_run_or_problem(child, path, cpu_placement(4), CONTEXT).problem == (
        error.value.message
    )


@pytest.mark.parametrize(
    ("keeps", "reason"),
    [
        (lambda name: "attn_k.weight" not in name, "tensor 'blk.0.attn_k.weight' not found"),
        (lambda name: False, "tensor 'token_embd.weight' not found"),  # a vocabulary alone
    ],
)
def test_missing_tensors(child, moe, tmp_path, keeps, reason):
    path = edit_gguf(moe, tmp_path / "edited.gguf", keep_tensor=keeps)
    with pytest.raises(LauncherError, match=reason):
        dry_run(child, path, cpu_placement(4), CONTEXT)


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        (lambda data: b"", "failed to read magic"),
        (lambda data: b"hello" * 100, "invalid magic"),
        (lambda data: data[:3000], "failed to read key-value pairs"),
        (lambda data: data[:-30_000], "not within the file bounds"),
    ],
)
def test_damaged_files(child, moe, tmp_path, cut, reason):
    path = tmp_path / "damaged.gguf"
    path.write_bytes(cut(moe.read_bytes()))
    with pytest.raises(LauncherError, match=reason):
        dry_run(child, path, cpu_placement(4), CONTEXT)


def test_what_is_no_file(child, tmp_path):
    with pytest.raises(LauncherError, match="is a folder"):
        dry_run(child, tmp_path, cpu_placement(4), CONTEXT)
    with pytest.raises(LauncherError, match="no longer there"):
        dry_run(child, tmp_path / "gone.gguf", cpu_placement(4), CONTEXT)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (ContextSettings(n_ctx=0), "not possible"),
        (ContextSettings(n_ctx=256, kv_type="q9_9"), "no KV cache type"),
    ],
)
def test_a_context_that_the_model_cannot_have(child, moe, context, words):
    with pytest.raises(LauncherError, match=words):
        dry_run(child, moe, cpu_placement(4), context)


def test_a_context_beyond_the_training_length_is_allowed(child, moe):
    facts = facts_of([read_header(moe)])
    assert facts.ctx_train == 2048
    context = ContextSettings(n_ctx=8192, n_threads=1)
    said = dry_run(child, moe, cpu_placement(4), context)
    assert said.n_ctx == 8192
    assert said.kv_bytes == {"RAM": pytest.approx(kv_bytes(facts, context), abs=ROUNDING_BYTES)}


#: Single fields with which llama.cpp ends its process instead of returning an error.
ABORTS = [
    *(
        (kind, {key: value})
        for kind in ("moe", "mla", "hybrid")
        for key, value in (
            (".block_count", 0),
            (".block_count", 1 << 20),
            (".expert_count", DELETED),
            (".expert_count", 1 << 20),
            (".expert_used_count", DELETED),
            (".expert_used_count", 1 << 20),
        )
    ),
    ("moe", {".rope.dimension_count": 0}),
    ("mla", {".attention.head_count_kv": 0}),
    ("mla", {".attention.key_length": DELETED}),
    ("mla", {".rope.dimension_count": 1 << 20}),
    ("mla", {".attention.key_length_mla": 1}),
    ("mla", {".expert_gating_func": 1 << 20}),
    ("sliding", {".attention.value_length": 0}),
    ("hybrid", {".attention.head_count": 1}),
    ("hybrid", {".expert_gating_func": 0}),
    ("mamba", {".embedding_length": 0}),
    ("mamba", {".ssm.inner_size": 0}),
]


def test_settings_that_are_refused_are_no_fault_of_the_file(child, tmp_path):
    path = write_tiny_model(tmp_path / "short-heads.gguf", "moe", head_dim=16)
    with pytest.raises(SettingsRefused) as error:
        dry_run(child, path, cpu_placement(4), ContextSettings(n_ctx=512, kv_type="q8_0"))
    assert error.value.message.startswith("llama.cpp does not run this model with these settings:")
    assert "q8_0" in error.value.message
    assert "KV type f16" in error.value.hint
    assert dry_run(child, path, cpu_placement(4), CONTEXT).kv_bytes["RAM"]


def test_a_refused_file_is_no_matter_of_settings(child, moe, tmp_path):
    path = edit_gguf(moe, tmp_path / "bad.gguf", {".block_count": 0})
    with pytest.raises(LauncherError) as error:
        dry_run(child, path, cpu_placement(4), CONTEXT)
    assert not isinstance(error.value, SettingsRefused)


def test_files_that_end_the_childs_process_are_refused_with_the_reason(child, models, tmp_path):
    good = dry_run(child, models["moe"], cpu_placement(4), CONTEXT)
    for number, (kind, changes) in enumerate(ABORTS):
        path = edit_gguf(models[kind], tmp_path / f"{number}.gguf", changes)
        with pytest.raises(LauncherError) as error:
            dry_run(child, path, cpu_placement(4), CONTEXT)
        sentence = error.value.message
        assert "GGML_ASSERT" in sentence or "fatal error" in sentence, (kind, changes, sentence)
        assert child.pid is None, (kind, changes)
    # Another context: the answer must be the child's, not a remembered one.
    again = dry_run(child, models["moe"], cpu_placement(4), ContextSettings(n_ctx=256))
    assert again.kv_bytes["RAM"] < good.kv_bytes["RAM"]


def test_an_engine_that_asks_first_survives_such_a_file(child, moe, tmp_path):
    path = edit_gguf(moe, tmp_path / "edited.gguf", {".block_count": 0})
    engine = LlamaEngine(accept=make_acceptor(child))
    try:
        refused = run(engine, LoadRequest(path, cpu_placement(4), CONTEXT)).end
        assert isinstance(refused, LoadFailed)
        assert "GGML_ASSERT" in refused.error.message
        assert run(engine, LoadRequest(moe, cpu_placement(4), CONTEXT)).report.n_ctx == 512
    finally:
        engine.close()


def test_devices_and_build_are_described_without_a_driver_in_this_process(child):
    devices = describe_devices(child)
    assert [device.backend for device in devices if device.kind == "cpu"] == ["CPU"]
    assert all(device.total_bytes for device in devices if device.kind == "cpu")
    build = describe_build(child)
    assert build.version.count(".") == 2
    assert build.library_folder.is_dir()
    assert "CPU" in build.system_info


def test_a_cache_on_two_gpus_is_shared_by_layers_and_by_their_sizes(moe, tmp_path):
    layers = {0: "CUDA0", 1: "CUDA0", 2: "CUDA1", 3: "CPU"}
    log = LoadLog(caches=(CacheReport("kv", 600, 4, layers),))
    alike = result_of(log, ["CUDA0", "CUDA1"], CONTEXT)
    assert alike.kv_bytes == {"CUDA0": 300, "CUDA1": 150, "RAM": 150}
    edited = edit_gguf(moe, tmp_path / "edited.gguf", {".attention.head_count_kv": (1, 1, 1, 3)})
    by_size = result_of(log, ["CUDA0", "CUDA1"], CONTEXT, facts_of([read_header(edited)]))
    assert by_size.kv_bytes == {"CUDA0": 200, "CUDA1": 100, "RAM": 300}
