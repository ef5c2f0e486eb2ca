"""The slider's promise on a real second device: what the plan says is what llama.cpp does.

One process a placement, on the Vulkan build and Mesa's software device.
"""

import pytest

from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import facts_of
from moelauncher.core.library.sample_model import build_sample_model
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.default_gpus import default_gpus
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import PlacementDevice
from moelauncher.core.memory.weight_probes import weight_probes
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import describe_build, describe_devices, dry_run
from moelauncher.engine.weight_support import refused_weights
from tests.helpers.truth_models import write_truth_model
from tests.helpers.vulkan_build import require_vulkan_build, run_probe, vulkan_environment

pytestmark = pytest.mark.vulkan

MIB = 1 << 20
#: Slider stop of the sample model to MiB of weights on the GPU.
STOPS = {0: 103.7, 8: 88.1, 30: 45.2}
#: llama.cpp's log has two decimals of a MiB; models with sliding windows have two caches.
ROUNDING_BYTES = 2 * round(0.005 * MIB) + 2


@pytest.fixture(scope="module")
def environment(session_cache):
    build = require_vulkan_build()
    return vulkan_environment(build, session_cache / "shaders")


@pytest.fixture(scope="module")
def sample(environment, session_cache):
    return build_sample_model(session_cache)


@pytest.fixture
def child(environment):
    child = Child(environment=environment, timeout_s=240)
    yield child
    child.close()


@pytest.mark.parametrize("cpu_moe", STOPS)
def test_gpu_weights_are_the_plan_and_the_model_answers(environment, sample, cpu_moe):
    answer = run_probe(environment, "sample", str(sample), str(cpu_moe))
    (device,) = answer["plan"]
    planned = answer["plan"][device] / MIB
    loaded = sum(
        buffer["n_bytes"]
        for buffer in answer["buffers"]
        if buffer["device"] == device and buffer["kind"] == "weights"
    )
    assert loaded / MIB == pytest.approx(planned, abs=0.1)
    assert loaded / MIB == pytest.approx(STOPS[cpu_moe], abs=0.1)
    assert answer["mismatches"] == []
    assert answer["tokens"] == 2
    assert "Paris" in answer["text"]


def test_the_child_sees_the_device_and_dry_runs_on_it(child, sample):
    assert describe_build(child).gpu_offload
    (gpu,) = [device for device in describe_devices(child) if device.kind != "cpu"]
    assert (gpu.name, gpu.backend) == ("Vulkan0", "Vulkan")
    assert gpu.total_bytes
    facts = facts_of([read_header(sample)])
    context = ContextSettings(n_ctx=512, n_ubatch=8)
    for cpu_moe in STOPS:
        placement = place(facts, [PlacementDevice(gpu.name, gpu.free_bytes)], cpu_moe=cpu_moe)
        result = dry_run(child, sample, placement, context)
        assert result.kv_bytes == {"Vulkan0": pytest.approx(11.25 * MIB, abs=0.01 * MIB)}
        assert set(result.compute_bytes) == {"Vulkan0", "RAM"}


def test_forecasts_of_every_kind_of_model_are_what_is_allocated(environment, tmp_path):
    loads = run_probe(environment, "sizes", str(tmp_path))
    loaded = [load for load in loads if not load["problem"]]
    assert len(loaded) > 150
    assert {"moe", "fused", "shared", "sliding", "hybrid"} <= {load["kind"] for load in loaded}
    _check(loads)


@pytest.mark.timeout(900)  # 31 loads of 110 MB, 40 s on a calm machine
def test_forecasts_of_the_sample_model_are_what_is_allocated(environment, sample):
    loads = run_probe(environment, "sizes", str(sample))
    assert len(loads) == 31 * 4
    assert not any(load["problem"] for load in loads)
    _check(loads)


def test_two_gpus_hold_what_each_was_planned_to(environment, tmp_path):
    twice = {**environment, "GGML_VK_VISIBLE_DEVICES": "0,0"}
    found = run_probe(twice, "shares", str(tmp_path))
    assert {device["where"][-1] for device in found} == {"Vulkan0", "Vulkan1"}
    assert sum(device["real"]["weights"] > 0 for device in found) == len(found) == 5 * 3 * 2
    for device in found:
        assert not device["mismatches"], device["where"]
        for kind, real in device["real"].items():
            planned = device["planned"][kind]
            assert abs(planned - real) <= ROUNDING_BYTES, (device["where"], kind, planned, real)


def test_weights_that_the_device_does_not_take_are_planned_in_ram(environment, child, tmp_path):
    """The software device takes tensors of up to 128 MiB: neither output matrix nor ``down``."""
    model = write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m", n_layer=1)
    facts = facts_of([read_header(model)])
    (device,) = (gpu.name for gpu in default_gpus(describe_devices(child)))
    refused = refused_weights(child, facts, [device])
    names = [name for probe in refused[device] for name in weight_probes(facts)[probe]]
    assert sorted(names) == ["blk.0.ffn_down_exps.weight", "output.weight"]
    placement = place(facts, [PlacementDevice(device, None)], cpu_moe=0)
    whole, kept = (
        forecast(facts, placement, ContextSettings(), refused_weights=weights)
        for weights in (None, refused)
    )
    moved = whole.gpus[0].weights_bytes - kept.gpus[0].weights_bytes
    assert moved == sum(tensor.n_bytes for tensor in facts.tensors if tensor.name in names)
    assert kept.ram.weights_bytes == whole.ram.weights_bytes + moved
    _check(run_probe(environment, "sizes", str(model)))


def _check(loads):
    for load in loads:
        where = (load["kind"], load["stop"], load["context"])
        assert bool(load["problem"]) == bool(load["error"]), where
        assert not load["mismatches"], where
    differences = [
        (load["kind"], load["stop"], load["context"], source, kind, planned, real)
        for load in loads
        for kind, real in load["real"].items()
        for source in ("formula", "dry_run")
        if not (kind == "compute" and source == "formula")  # an estimate, meant to be one
        if abs((planned := load[source][kind]) - real) > ROUNDING_BYTES
    ]
    assert differences == []
