"""A finished reply, and what a load really took, as JSON for programs.

In: the load report, the plan's forecast, the reply's text and numbers. Out: dicts. Pure.
"""

from __future__ import annotations

from moelauncher.core.engine_protocol import GenerationStats, LoadReport
from moelauncher.core.memory.memory_forecast import MemoryForecast
from moelauncher.core.memory.placement import RAM
from moelauncher.core.memory.plan_document import placement_document


def reply_document(
    text: str,
    reasoning: str,
    stats: GenerationStats,
    report: LoadReport,
    forecast: MemoryForecast,
) -> dict[str, object]:
    """What ``chat --json`` prints. Where the load was not as planned, stderr says so."""
    return {
        "text": text,
        "reasoning": reasoning,
        "finish_reason": stats.finish_reason,
        "prompt_tokens": stats.prompt_tokens,
        "prompt_tok_s": stats.prompt_tok_s,
        "completion_tokens": stats.completion_tokens,
        "tok_s": stats.tok_s,
        "ttft_s": stats.ttft_s,
        "load_s": report.load_s,
        "placement": placement_document(report.placement),
        "devices": loaded_devices(report, forecast),
    }


def loaded_devices(report: LoadReport, forecast: MemoryForecast) -> list[dict[str, object]]:
    """Bytes per device and kind as llama.cpp reported them, GPUs first, ``RAM`` last.

    Only the weights in RAM are the forecast's: llama.cpp reports the span of the mapped file
    there, not the bytes that are used.
    """
    names = [device.name for device in forecast.gpus]
    sums: dict[tuple[str, str], int] = {}
    for buffer in report.buffers:
        device = buffer.device if buffer.device in names else RAM
        # The logits buffer belongs to computing, as in the forecast.
        kind = "compute" if buffer.kind == "output" else buffer.kind
        sums[device, kind] = sums.get((device, kind), 0) + buffer.n_bytes
    sums[RAM, "weights"] = forecast.ram.weights_bytes
    documents: list[dict[str, object]] = []
    for device in (*names, RAM):
        sizes = {
            kind: sums.get((device, kind), 0) for kind in ("weights", "kv", "recurrent", "compute")
        }
        documents.append(
            {
                "name": device,
                "kind": "cpu" if device == RAM else "gpu",
                **{f"{kind}_bytes": size for kind, size in sizes.items()},
                "total_bytes": sum(sizes.values()),
            }
        )
    return documents
