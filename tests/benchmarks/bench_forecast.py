"""What one step of the slider costs for a 61-layer model, against a frame of 60 Hz.

Run: .venv/bin/python -m tests.benchmarks.bench_forecast

Prints the median time of placement and forecast at a stop, for one, two and four GPUs, and
the ratio to a frame (below 1.0: a drag never waits for it).
"""

from __future__ import annotations

import statistics
import sys
import time

from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import forecast
from moelauncher.core.memory.place_model import place
from tests.helpers.planned_models import MIB, gpu, made_facts

FRAME_S = 1 / 60
CONTEXT = ContextSettings(n_ctx=32768)
MODEL = made_facts(
    [(200 * MIB, 0)] * 3 + [(200 * MIB, 6000 * MIB)] * 58,
    arch="deepseek2",
    keys={
        "embedding_length": 7168,
        "attention.head_count": 128,
        "attention.head_count_kv": 1,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.key_length_mla": 192,
    },
)


def median_stop_s(n_gpus: int) -> float:
    """Median over all stops, each made as a drag makes it."""
    cards = [gpu(24, f"GPU{index}") for index in range(n_gpus)]
    times = []
    for stop in range(len(MODEL.expert_layers) + 1):
        started = time.perf_counter()
        forecast(MODEL, place(MODEL, cards, cpu_moe=stop, context=CONTEXT), CONTEXT)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    """Print one line for each number of GPUs."""
    for n_gpus in (1, 2, 4):
        stop_s = median_stop_s(n_gpus)
        sys.stdout.write(
            f"{n_gpus} GPU(s): {stop_s * 1e6:.0f} us a stop, {stop_s / FRAME_S:.3f} of a frame\n"
        )


if __name__ == "__main__":
    main()
