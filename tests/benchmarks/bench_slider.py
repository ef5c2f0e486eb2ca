"""What one step of the slider costs in the window, for a model of 61 layers.

Run: ``python -m tests.benchmarks.bench_slider [--gpus N] [--repeat R]``. Prints the median and
the longest time from a step of the slider until gauge, layer strip and sentence are painted
again, and their ratio to a frame of 60 Hz (below 1.0 is wanted).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication, QSlider

from moelauncher import app
from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from tests.helpers.gguf_files import write_tiny_model

FRAME_S = 1 / 60
N_LAYERS = 61
GIB = 1 << 30


def pretend(program: app.Program, n_gpus: int) -> None:
    """So many cards of 24 GiB, as the meters and the build would tell."""
    names = [f"CUDA{index}" for index in range(n_gpus)]
    devices = [BackendDevice(name, "RTX", "gpu", "CUDA", 23 * GIB, 24 * GIB) for name in names]
    readings = tuple(GpuReading("RTX", "NVML", 24 * GIB, GIB, 23 * GIB, name) for name in names)
    machine = program.session.machine
    machine.set_devices(devices)
    machine.set_snapshot(
        MachineSnapshot(time.monotonic(), 128 * GIB, 100 * GIB, GIB, gpus=readings)
    )


def step_s(program: app.Program, stop: int) -> float:
    """Seconds until all that a step changes is painted."""
    window = program.window
    slider = window.findChild(QSlider, "expertSlider")
    assert slider is not None
    began_s = time.perf_counter()
    slider.setValue(stop)
    window.memory.repaint()
    window.placement.repaint()
    return time.perf_counter() - began_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = write_tiny_model(Path(folder) / "deep.gguf", "moe", n_layer=N_LAYERS)
        program = app.build(["--basedir", folder, str(model)])
        planner = program.session.planner
        while planner.facts is None:
            QApplication.processEvents()
        pretend(program, options.gpus)
        times = [
            step_s(program, stop)
            for _ in range(options.repeat)
            for stop in (*range(N_LAYERS + 1), *reversed(range(N_LAYERS)))
        ]
        program.window.close()
        program.close()
    for name, value_s in (("median", statistics.median(times)), ("longest", max(times))):
        sys.stdout.write(f"{name}: {value_s * 1e3:.2f} ms, {value_s / FRAME_S:.2f} of a frame\n")


if __name__ == "__main__":
    main()
