"""Measuring in the child process: one placement, opened, then repeated as often as asked.

In: parameters from JSON. Out: results for JSON. Runs in the child only. What goes wrong here
(an abort, a hang, a driver that is lost) costs the parent one row.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.engine.bench import BenchCase, BenchRun, memory_taken
from moelauncher.engine.llama_engine import LlamaEngine
from moelauncher.engine.placement_json import load_request_from_json

#: For tests: "abort:8" or "hang:8" makes this process fail at slider stop 8; "lost:8" does so
#: in mid-measurement, as where a device is lost.
FAULT_VARIABLE = "MOELAUNCHER_CHILD_FAULT"

_engine: LlamaEngine | None = None
_run: BenchRun | None = None
_stop = -1


def bench_open(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Load a placement and warm it up; what it took, and what was wrong with it."""
    global _engine, _run, _stop
    request = load_request_from_json(parameters)
    _stop = request.placement.cpu_moe
    _fail_where_asked(request.placement.cpu_moe)
    if _engine is None:
        _engine = LlamaEngine()
    _run = BenchRun(_engine)
    report = _run.open(request, int(parameters["n_prompt"]), int(parameters["n_generate"]))
    vram, ram = memory_taken(BenchCase(request, parameters["ram_weights_bytes"]), report)
    return {
        "vram_bytes": vram,
        "ram_bytes": ram,
        "notes": list(report.mismatches),
        "load_s": report.load_s,
        "n_threads": report.n_threads,
        "flash_attention": report.flash_attention,
    }


def bench_repeat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One timed run under the opened placement."""
    if _run is None:
        raise LauncherError(tr("No placement is open to measure."))
    if os.environ.get(FAULT_VARIABLE) == f"lost:{_stop}":
        os.abort()
    stats = _run.repeat(
        int(parameters["number"]), int(parameters["n_prompt"]), int(parameters["n_generate"])
    )
    return {
        "prompt_tok_s": stats.prompt_tok_s,
        "tok_s": stats.tok_s,
        "prompt_tokens": stats.prompt_tokens,
    }


def _fail_where_asked(stop: int) -> None:
    kind, _, wanted = os.environ.get(FAULT_VARIABLE, "").partition(":")
    if wanted != str(stop):
        return
    if kind == "abort":
        os.abort()
    if kind == "hang":
        while True:
            time.sleep(60)
