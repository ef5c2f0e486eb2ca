"""A reply as ``chat --json`` prints it."""

from __future__ import annotations

import json
from pathlib import Path

from moelauncher.core.chats.reply_document import reply_document
from moelauncher.core.engine_protocol import BufferReport, GenerationStats, LoadReport
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.memory_forecast import DeviceForecast, MemoryForecast
from moelauncher.core.memory.placement import Placement, PlacementDevice

PLACEMENT = Placement(
    cpu_moe=1,
    of=2,
    which="first",
    devices=(PlacementDevice("Vulkan0", 100),),
    cpu_expert_layers=(0,),
    n_gpu_layers=3,
    layer_devices=(0, 0, 0),
    tensor_split=(),
    patterns=("p",),
)


def device(name: str, kind: str) -> DeviceForecast:
    return DeviceForecast(name, kind, 5, 7, 0, 0, 0, "dry-run", 0, 0, None)


FORECAST = MemoryForecast((device("Vulkan0", "gpu"), device("RAM", "cpu")), True, 1, "", "dry-run")
REPORT = LoadReport(
    path=Path("m.gguf"),
    placement=PLACEMENT,
    context=ContextSettings(),
    load_s=1.5,
    n_ctx=4096,
    n_threads=1,
    flash_attention=True,
    buffers=(
        BufferReport("Vulkan0", "weights", 100),
        BufferReport("CPU_Mapped", "weights", 9999),
        BufferReport("Vulkan0", "kv", 20),
        BufferReport("CPU", "kv", 2),
        BufferReport("Vulkan0", "compute", 30),
        BufferReport("Vulkan_Host", "compute", 3),
        BufferReport("CPU", "output", 4),
    ),
    template_source="model",
)
STATS = GenerationStats("stop", 10, 2, 5, 100.0, None, 0.1, 0.5, 17)


def test_the_document() -> None:
    document = reply_document("Paris", "hm", STATS, REPORT, FORECAST)
    assert json.loads(json.dumps(document)) == document
    assert document["text"] == "Paris"
    assert document["tok_s"] is None  # one token has no rate
    assert document["load_s"] == 1.5
    assert document["placement"] == {
        "cpu_moe": 1,
        "of": 2,
        "which": "first",
        "layers": [0],
        "tensor_split": [],
        "patterns": ["p"],
    }


def test_bytes_as_they_were_reported() -> None:
    gpu, ram = reply_document("", "", STATS, REPORT, FORECAST)["devices"]  # type: ignore[misc]
    assert gpu == {
        "name": "Vulkan0",
        "kind": "gpu",
        "weights_bytes": 100,
        "kv_bytes": 20,
        "recurrent_bytes": 0,
        "compute_bytes": 30,
        "total_bytes": 150,
    }
    # The mapped file's span is no use of memory: the forecast's weights stand there.
    assert (ram["weights_bytes"], ram["kv_bytes"], ram["compute_bytes"]) == (12, 2, 7)
