"""Decode speed of ``moelauncher bench`` against llama.cpp's own ``llama-bench``.

Run: ``python -m tests.benchmarks.bench_llama_bench [MODEL.gguf] [--turns N]``. Wants a quiet
machine. Prints the rates of both, and the median of the ratios of all turns (0.97 and more is
wanted). Both are processes of their own, and take turns (A B, B A): what else the machine does
falls on both alike. The rate of a turn is the median of its repeats. llama-bench gets exactly the
command that ``measurements --md`` would print.

Where the build cache has none, llama-bench is compiled once from the llama.cpp sources that
llama-cpp-python's source package carries, as that package compiles itself (CMake and a compiler
are needed, ten minutes on two cores). ``--source DIR`` names an unpacked llama.cpp instead of
fetching it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from moelauncher.core.cpu_cores import default_threads
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.memory.llama_commands import measured_commands
from moelauncher.core.paths import app_paths
from moelauncher.core.speed.measurement import Measurement
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.engine.cpu_threads import physical_cores
from tests.benchmarks.bench_decode import fast_model
from tests.helpers.places import build_cache

_PACKAGE = "llama-cpp-python"
_OFF = ("SERVER", "TESTS", "EXAMPLES", "APP", "UI")


def llama_bench(source: Path | None) -> Path:
    """The program, compiled where it is not there yet."""
    folder = build_cache(os.environ) / f"llama-bench-{version(_PACKAGE)}-native"
    name = "llama-bench.exe" if sys.platform == "win32" else "llama-bench"
    program = folder / "bin" / name
    if program.is_file():
        return program
    with tempfile.TemporaryDirectory() as scratch:
        source = source or _fetched(Path(scratch))
        options = [f"-DLLAMA_BUILD_{part}=OFF" for part in _OFF]
        options += ["-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_TOOLS_INSTALL=OFF"]
        cmake = ["cmake", "-S", str(source), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"]
        cmake += ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run([*cmake, *options], check=True)
        build = ["cmake", "--build", str(folder), "--config", "Release", "-j", "2"]
        subprocess.run([*build, "--target", "llama-bench"], check=True)
    return program


def _fetched(scratch: Path) -> Path:
    """llama.cpp as the installed version's source package carries it."""
    wanted = f"{_PACKAGE}=={version(_PACKAGE)}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", _PACKAGE]
    subprocess.run([*command, "-d", str(scratch), wanted], check=True)
    (archive,) = scratch.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(scratch, filter="data")
    (folder,) = scratch.glob("*/vendor/llama.cpp")
    return folder


class Turns:
    """One model, measured by both programs under one setting."""

    def __init__(self, program: Path, options: argparse.Namespace, base: Path) -> None:
        self._program = program
        self._options = options
        self._base = base
        self._facts: ModelFacts = load_facts(options.model)
        self._measured: Measurement | None = None

    def ours(self) -> float:
        """tok/s of ``moelauncher bench``."""
        options = self._options
        command = [sys.executable, "-m", "moelauncher", "bench", str(options.model), "--json"]
        command += ["--basedir", str(self._base), "--cpu-moe", options.cpu_moe]
        command += ["--pp", str(options.depth), "--tg", str(options.tokens)]
        command += ["--repeat", str(options.repeats)]
        command += ["--ctx", str(options.depth + options.tokens + 64)]
        command += ["--threads", str(options.threads)]
        last = _output(command).splitlines()[-1]
        store = MeasurementStore(app_paths(self._base).measurements_file)
        self._measured = store.everything()[-1]
        store.close()
        return float(json.loads(last)["median"])

    def theirs(self) -> float:
        """tok/s of llama-bench under the same setting."""
        assert self._measured is not None  # ours goes first
        command = shlex.split(
            measured_commands(self._facts, self._measured, self._options.repeats, windows=False)[-1]
        )
        command[0] = str(self._program)
        command[command.index("-m") + 1] = str(self._options.model)
        (row,) = json.loads(_output([*command, "-o", "json"]))
        return statistics.median(row["samples_ts"])


def _output(command: list[str]) -> str:
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    return finished.stdout.decode("utf-8")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=4, help="in a turn, each of both")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--cpu-moe", default="auto")
    parser.add_argument("--threads", type=int, default=default_threads(physical_cores()))
    parser.add_argument("--source", type=Path, help="an unpacked llama.cpp")
    options = parser.parse_args()
    options.model = (options.model or fast_model()).absolute()
    program = llama_bench(options.source)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as base:
        turns = Turns(program, options, Path(base))
        turns.ours()  # both find the file in memory
        turns.theirs()
        for number in range(options.turns):
            pair = [(turns.ours, ours), (turns.theirs, theirs)]
            for measure, rates in pair if number % 2 == 0 else reversed(pair):
                rates.append(measure())
    print(f"{options.model.name}, {options.threads} threads, {options.tokens} tokens")
    for name, rates in (("moelauncher", ours), ("llama-bench", theirs)):
        middle = statistics.median(rates)
        print(f"  {name:12} {middle:7.2f} tok/s  ({min(rates):.2f} to {max(rates):.2f})")
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    print(f"  moelauncher / llama-bench {ratio:.3f}")


if __name__ == "__main__":
    main()
