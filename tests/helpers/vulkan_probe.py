"""What the Vulkan tests run in a process of its own. Prints one JSON document."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelauncher.core.engine_protocol import GenerateRequest, LoadRequest
from moelauncher.core.files.gguf_header import read_header
from moelauncher.core.files.model_facts import ModelFacts, facts_of
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.default_gpus import default_gpus
from moelauncher.core.memory.forecast import DryRunResult, forecast
from moelauncher.core.memory.memory_forecast import DeviceForecast
from moelauncher.core.memory.place_model import place
from moelauncher.core.memory.placement import Placement, PlacementDevice
from moelauncher.core.memory.weight_probes import RefusedWeights
from moelauncher.engine.child import Child
from moelauncher.engine.devices import list_devices
from moelauncher.engine.dry_run import dry_run_or_problem
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.weight_support import refused_weights
from tests.helpers.engines import GREEDY, run
from tests.helpers.gguf_files import RUNNABLE_KINDS, write_tiny_model
from tests.helpers.truth_models import write_truth_model

#: More tokens at once crash Mesa's software device when experts are on it.
N_UBATCH = 8
KV_TYPES = ("f16", "q8_0")
CONTEXT_SIZES = (512, 1500)


def gpus() -> list[PlacementDevice]:
    gpus = default_gpus(list_devices())
    return [PlacementDevice(gpu.name, gpu.free_bytes, gpu.total_bytes) for gpu in gpus]


def request_for(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    refused: RefusedWeights | None = None,
) -> LoadRequest:
    plan = forecast(facts, placement, context, refused_weights=refused)
    weights = {device.name: device.weights_bytes for device in plan.gpus}
    return LoadRequest(facts.path, placement, context, expected_gpu_weights=weights)


def sample(path: Path, cpu_moe: int) -> dict[str, Any]:
    """Load the sample model at one stop and let it say two tokens."""
    facts = facts_of([read_header(path)])
    placement = place(facts, gpus(), cpu_moe=cpu_moe)
    request = request_for(facts, placement, ContextSettings(n_ctx=256, n_ubatch=N_UBATCH))
    engine = LlamaEngine()
    try:
        report = run(engine, request).report
        reply = run(
            engine,
            GenerateRequest(raw_prompt="The capital of France is", sampling=GREEDY, max_tokens=2),
        )
    finally:
        engine.close()
    return {
        "plan": dict(request.expected_gpu_weights),
        "buffers": [asdict(buffer) for buffer in report.buffers],
        "mismatches": report.mismatches,
        "text": reply.text,
        "tokens": reply.stats.completion_tokens,
    }


def sizes(path: Path) -> list[dict[str, Any]]:
    """Forecasts and real loads at every stop, with every KV type and context size.

    Of the model ``path``, or, where that is a folder, of every tiny model, written into it.
    """
    loads = []
    child, engine = Child(), LlamaEngine()
    try:
        for kind, model in _models(path):
            facts = facts_of([read_header(model)])
            for stop in range(place(facts, gpus(), cpu_moe=0).of + 1):
                # The weights stay where they are: only the first of these is a whole load.
                for kv_type, n_ctx in itertools.product(KV_TYPES, CONTEXT_SIZES):
                    context = ContextSettings(n_ctx, kv_type, N_UBATCH, 1)
                    loads.append(_load(child, engine, kind, facts, stop, context))
    finally:
        engine.close()
        child.close()
    return loads


def shares(folder: Path) -> list[dict[str, Any]]:
    """What lies on each of several GPUs, planned and loaded, for models of some kinds."""
    context = ContextSettings(512, "f16", N_UBATCH, 1)
    found = []
    child, engine = Child(), LlamaEngine()
    try:
        for kind in ("moe", "tied", "mla", "sliding", "hybrid"):
            facts = facts_of([read_header(write_tiny_model(folder / f"{kind}.gguf", kind))])
            for stop, which in ((0, "first"), (2, "first"), (2, "last")):
                placement = place(facts, gpus(), cpu_moe=stop, which=which, context=context)
                names = [device.name for device in placement.devices]
                expected = dry_run_or_problem(child, facts.path, placement, context, facts=facts)
                plan = forecast(facts, placement, context, dry_run=expected)
                report = run(engine, request_for(facts, placement, context)).report
                sums = [_real(report, name) for name in names]
                found += [
                    {
                        "where": (kind, stop, which, gpu.name),
                        "planned": _by_kind(gpu),
                        "real": real,
                        "mismatches": report.mismatches,
                    }
                    for gpu, real in zip(plan.gpus, sums, strict=True)
                ]
    finally:
        engine.close()
        child.close()
    return found


def _models(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.stem, path)]
    return [(kind, write_tiny_model(path / f"{kind}.gguf", kind)) for kind in RUNNABLE_KINDS]


def _load(
    child: Child,
    engine: LlamaEngine,
    kind: str,
    facts: ModelFacts,
    stop: int,
    context: ContextSettings,
) -> dict[str, Any]:
    placement = place(facts, gpus(), cpu_moe=stop)
    refused = refused_weights(child, facts, [gpu.name for gpu in placement.devices])
    expected = dry_run_or_problem(child, facts.path, placement, context, facts=facts)
    outcome = run(engine, request_for(facts, placement, context, refused))
    return {
        "kind": kind,
        "stop": stop,
        "context": asdict(context),
        "problem": expected.problem,
        "error": str(getattr(outcome.end, "error", "")),
        "mismatches": () if expected.problem else outcome.report.mismatches,
        "formula": _gpu_bytes(facts, placement, context, None, refused),
        "dry_run": _gpu_bytes(facts, placement, context, expected, refused),
        "real": {} if expected.problem else _real(outcome.report, placement.devices[0].name),
    }


def _gpu_bytes(
    facts: ModelFacts,
    placement: Placement,
    context: ContextSettings,
    expected: DryRunResult | None,
    refused: RefusedWeights,
) -> dict[str, int]:
    (gpu,) = forecast(facts, placement, context, dry_run=expected, refused_weights=refused).gpus
    return _by_kind(gpu)


def _by_kind(gpu: DeviceForecast) -> dict[str, int]:
    return {
        "weights": gpu.weights_bytes,
        "kv": gpu.kv_bytes,
        "recurrent": gpu.recurrent_bytes,
        "compute": gpu.compute_bytes,
    }


def _real(report: Any, device: str) -> dict[str, int]:
    sums = dict.fromkeys(("weights", "kv", "recurrent", "compute"), 0)
    for buffer in report.buffers:
        if buffer.device == device:
            sums[buffer.kind] += buffer.n_bytes
    return sums


def refused(folder: Path) -> list[dict[str, Any]]:
    """A model that the device has no room for, then one that it has.

    The software device takes its memory from this process, so a limit on the process is one
    on the device.
    """
    import resource  # not on Windows

    size_bytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    size_bytes *= resource.getpagesize()
    (gpu,) = gpus()
    large = write_truth_model(folder, "qwen3-30b-a3b-q4_k_m", n_layer=8)
    room_bytes = large.stat().st_size + (1 << 30)  # it is mapped whole, and then loaded
    resource.setrlimit(resource.RLIMIT_AS, (size_bytes + room_bytes,) * 2)
    outcomes = []
    engine = LlamaEngine()
    try:
        for path in (large, write_tiny_model(folder / "moe.gguf", "moe")):
            facts = facts_of([read_header(path)])
            placement = place(facts, [gpu], cpu_moe=0)
            end = run(engine, request_for(facts, placement, ContextSettings(256, "f16", 8, 1))).end
            shortage = getattr(end, "shortage", None)
            report = getattr(end, "report", None)
            outcomes.append(
                {
                    "error": str(getattr(end, "error", "")),
                    "shortage": asdict(shortage) if shortage else None,
                    "mismatches": report.mismatches if report else None,
                }
            )
    finally:
        engine.close()
    return outcomes


def main() -> None:
    command, path, *rest = sys.argv[1:]
    answer: Any
    if command == "sample":
        answer = sample(Path(path), int(rest[0]))
    else:
        answer = {"sizes": sizes, "shares": shares, "refused": refused}[command](Path(path))
    print(json.dumps(answer))  # noqa: T201 - its output is its answer


if __name__ == "__main__":
    main()
