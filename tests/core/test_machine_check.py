"""Verdicts on a machine and an installation."""

from __future__ import annotations

from dataclasses import replace

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.machine_check import BAD, GOOD, WARNING, Verdict, check_machine, worst

GIB = 1 << 30
CPU = BackendDevice("CPU", "Ryzen", "cpu", "CPU", 1, 2)
GPU = BackendDevice("CUDA0", "NVIDIA GeForce RTX 4070", "gpu", "CUDA", 11 * GIB, 12 * GIB)
READING = GpuReading(
    "NVIDIA GeForce RTX 4070",
    "NVML",
    total_bytes=12 * GIB,
    free_bytes=11 * GIB,
    device_name="CUDA0",
    temperature_c=50,
)
MACHINE = MachineSnapshot(0.0, 64 * GIB, 50 * GIB, 1, gpus=(READING,))
AVX2 = "CPU : AVX = 1 | AVX2 = 1 |"


def check(
    snapshot: MachineSnapshot = MACHINE,
    devices: tuple[BackendDevice, ...] = (CPU, GPU),
    build_problem: str = "",
    system_info: str = AVX2,
    cores: int | None = 8,
) -> dict[str, Verdict]:
    verdicts = check_machine(
        snapshot,
        devices,
        build_problem=build_problem,
        system_info=system_info,
        physical_cores=cores,
    )
    for verdict in verdicts:
        assert bool(verdict.advice) == (verdict.level != GOOD), verdict
    return {verdict.subject: verdict for verdict in verdicts}


CARD = "CUDA0 (NVIDIA GeForce RTX 4070)"


def test_all_is_well() -> None:
    verdicts = check()
    assert worst(list(verdicts.values())) == GOOD
    assert verdicts[CARD].text == "11.0 GiB of 12.0 GiB VRAM is free."


def test_a_build_that_does_not_start_is_all_that_matters() -> None:
    verdicts = check(build_problem="libllama.so is missing.")
    assert verdicts["llama.cpp"] == Verdict(
        BAD, "llama.cpp", "libllama.so is missing.", "Install llama-cpp-python again."
    )
    assert CARD not in verdicts


def test_a_gpu_that_the_build_cannot_use() -> None:
    unmatched = replace(MACHINE, gpus=(replace(READING, device_name=None),))
    verdicts = check(unmatched, devices=(CPU,))
    assert verdicts["NVIDIA GeForce RTX 4070"].level == BAD
    assert "With your GPU" in verdicts["NVIDIA GeForce RTX 4070"].advice


def test_no_gpu_at_all() -> None:
    assert check(replace(MACHINE, gpus=()), devices=(CPU,))["GPU"].level == WARNING


def test_a_second_gpu_that_is_not_used() -> None:
    other = GpuReading("Radeon RX 7900", "amdgpu")
    verdicts = check(replace(MACHINE, gpus=(READING, other)))
    assert verdicts[CARD].level == GOOD
    assert verdicts["Radeon RX 7900"].level == WARNING


def test_a_gpu_that_is_full_hot_or_throttled() -> None:
    def with_reading(**changes: object) -> Verdict:
        reading = replace(READING, **changes)  # type: ignore[arg-type]
        return check(replace(MACHINE, gpus=(reading,)))[CARD]

    assert "Only 1.0 GiB" in with_reading(free_bytes=GIB).text
    assert "hot: 91" in with_reading(temperature_c=91.0).text
    assert "power limit" in with_reading(throttle_reasons=("power limit",)).text


def test_a_program_that_imitates_a_gpu() -> None:
    software = BackendDevice(
        "Vulkan0", "llvmpipe (LLVM 15.0.6, 256 bits)", "gpu", "Vulkan", 2 * GIB, 2 * GIB
    )
    verdicts = check(replace(MACHINE, gpus=()), devices=(CPU, software))
    assert verdicts[f"Vulkan0 ({software.description})"].level == WARNING


def test_memory() -> None:
    assert (
        check(replace(MACHINE, ram_total_bytes=4 * GIB, ram_available_bytes=GIB))["RAM"].level
        == BAD
    )
    assert check(replace(MACHINE, ram_available_bytes=2 * GIB))["RAM"].level == WARNING
    assert check(replace(MACHINE, ram_total_bytes=16 * GIB))["RAM"].level == WARNING
    assert check(replace(MACHINE, swap_used_bytes=3 * GIB))["swap"].level == WARNING
    assert "swap" not in check(replace(MACHINE, swap_used_bytes=None))


def test_the_processor() -> None:
    assert check(cores=2)["CPU"].level == WARNING
    assert check(cores=None)["CPU"].level == GOOD
    assert check(system_info="CPU : AVX = 1 | F16C = 1 |")["CPU"].level == WARNING
