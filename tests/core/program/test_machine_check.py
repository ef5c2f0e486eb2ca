"""Verdicts on a machine and an installation, but for its GPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moelauncher.core.program.doctor_facts import DiskSpeed
from moelauncher.core.program.machine_check import check_machine, worst
from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict
from tests.helpers.doctor_values import CPU, GIB, GPU, SNAPSHOT, facts


def check(snapshot: Any = SNAPSHOT, **changes: Any) -> dict[str, Verdict]:
    verdicts = check_machine(facts(snapshot, **changes))
    for verdict in verdicts:
        assert bool(verdict.advice) == (verdict.level != GOOD), verdict
        assert verdict.text.endswith("."), verdict
    return {verdict.subject: verdict for verdict in verdicts}


def test_all_is_well() -> None:
    verdicts = check()
    assert worst(list(verdicts.values())) == GOOD
    assert verdicts["llama.cpp"].text == "llama.cpp starts (0.3.36, vulkan)."
    assert verdicts["CPU"].text == "8 cores, and llama.cpp's best variant for them (zen4)."
    assert verdicts["RAM speed"].text == "RAM is read at 61.0 GB/s."
    assert "2100 MB/s" in verdicts["Disk"].text


def test_a_build_that_does_not_start_is_bad() -> None:
    verdicts = check(problem="libllama.so is missing.", devices=())
    assert verdicts["llama.cpp"].level == BAD
    assert verdicts["llama.cpp"].advice == "Install MoE Launcher again."
    advice = check(problem="gone.", devices=(), packaged=False)["llama.cpp"].advice
    assert advice == "Install llama-cpp-python again."


def test_a_module_that_is_left_out_is_a_warning_with_what_serves_instead() -> None:
    note = ("The module “cuda” is not used: it finds no GPU.",)
    beside = check(notes=note)["llama.cpp"]
    assert (beside.level, beside.advice) == (WARNING, "GPUs are used through vulkan all the same.")
    alone = check(notes=note, devices=(CPU,))["llama.cpp"]
    assert alone.advice == "The lines on the GPU say what to do."


def test_memory() -> None:
    low = replace(SNAPSHOT, ram_total_bytes=4 * GIB, ram_available_bytes=GIB)
    assert check(low)["RAM"].level == BAD
    assert check(replace(SNAPSHOT, ram_available_bytes=2 * GIB))["RAM"].level == WARNING
    assert check(replace(SNAPSHOT, ram_total_bytes=16 * GIB))["RAM"].level == WARNING
    assert check(replace(SNAPSHOT, swap_used_bytes=3 * GIB))["Swap"].level == WARNING
    assert "Swap" not in check(replace(SNAPSHOT, swap_used_bytes=None))
    assert check(ram_bytes_per_s=12e9)["RAM speed"].level == WARNING
    assert "RAM speed" not in check(ram_bytes_per_s=None)


def test_the_processor() -> None:
    few = check(physical_cores=2)["CPU"]
    assert few.level == WARNING and "on the GPU" in few.advice
    alone = check(replace(SNAPSHOT, gpus=()), physical_cores=2, devices=(CPU,))["CPU"]
    assert alone.level == WARNING and "GPU" not in alone.advice
    software = replace(GPU, description="llvmpipe (LLVM 15.0.6, 256 bits)")
    assert check(physical_cores=2, devices=(software, CPU))["CPU"].advice == alone.advice
    assert check(physical_cores=None)["CPU"].level == GOOD
    plain = {"cpu_variant": None, "cpu_variants": ()}
    assert check(features="CPU : AVX = 1 | F16C = 1 |", **plain)["CPU"].level == WARNING
    forced = check(cpu_variant="x64")["CPU"]
    assert forced.level == WARNING and "“zen4”" in forced.text


@pytest.mark.parametrize(
    ("rate", "level"), [(2e9, GOOD), (150e6, WARNING), (30e6, BAD), (None, GOOD)]
)
def test_the_disk_of_the_models(rate: float | None, level: str) -> None:
    verdict = check(disk=DiskSpeed(Path("/models"), rate, "" if rate else "nothing to read"))
    assert verdict["Disk"].level == level
    assert "Disk" not in check(disk=None)


def test_a_variable_that_an_uninstalled_toolkit_left() -> None:
    stale = {"CUDA_PATH": "C:\\gone"}
    assert "C:\\gone" in check(stale_variables=stale)["CUDA_PATH"].text
    told = check(stale_variables=stale, notes=("CUDA_PATH names a folder; left out.",))
    assert "CUDA_PATH" not in told
