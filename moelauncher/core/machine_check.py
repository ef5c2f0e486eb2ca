"""Is this machine set up to run models well? One verdict a question, with what to do.

In: what the meters, the installed build and the system say. Out: :class:`Verdict` values,
in the order of a reader's questions. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moelauncher.core.machine import BackendDevice, GpuReading, MachineSnapshot
from moelauncher.core.translate import tr
from moelauncher.core.units import GIB, format_bytes

GOOD, WARNING, BAD = "good", "warning", "bad"

#: Below this even a small MoE model does not fit beside the system.
_LITTLE_RAM_BYTES = 8 * GIB
_USUAL_RAM_BYTES = 24 * GIB
#: A swapped-out machine reads weights from the disk at every token.
_MUCH_SWAP_BYTES = 1 * GIB
#: A GPU with less free cannot hold attention and KV cache of a usual model.
_LITTLE_VRAM_BYTES = 2 * GIB
_HOT_C = 87.0


@dataclass(frozen=True)
class Verdict:
    """``level`` is "good", "warning" or "bad"; ``advice`` is "" where all is well."""

    level: str
    subject: str
    text: str
    advice: str = ""


def check_machine(
    snapshot: MachineSnapshot,
    devices: Sequence[BackendDevice],
    *,
    build_problem: str = "",
    system_info: str = "",
    physical_cores: int | None = None,
) -> tuple[Verdict, ...]:
    """All verdicts. ``build_problem`` says why llama.cpp does not start, "" where it does.

    ``system_info`` is llama.cpp's own line about the processor features it was built for.
    """
    return (
        _build(build_problem),
        *_gpus(snapshot, devices, build_problem),
        _ram(snapshot),
        *_swap(snapshot),
        *_cpu(system_info, physical_cores),
    )


def unused_gpu(snapshot: MachineSnapshot, devices: Sequence[BackendDevice]) -> Verdict | None:
    """The verdict on a GPU that a driver sees and llama.cpp does not use; None where all is well.

    Where none is used at all the advice is to mend the build or the driver.
    """
    for verdict in _gpus(snapshot, devices, ""):
        if any(gpu.name == verdict.subject and gpu.device_name is None for gpu in snapshot.gpus):
            return verdict
    return None


def worst(verdicts: Sequence[Verdict]) -> str:
    """The worst level of all."""
    levels = {verdict.level for verdict in verdicts}
    return BAD if BAD in levels else WARNING if WARNING in levels else GOOD


def _build(problem: str) -> Verdict:
    if problem:
        return Verdict(BAD, "llama.cpp", problem, tr("Install llama-cpp-python again."))
    return Verdict(GOOD, "llama.cpp", tr("llama.cpp starts."))


def _gpus(
    snapshot: MachineSnapshot, devices: Sequence[BackendDevice], build_problem: str
) -> tuple[Verdict, ...]:
    if build_problem:
        return ()
    usable = [device for device in devices if device.kind in ("gpu", "igpu")]
    unused = [gpu for gpu in snapshot.gpus if gpu.device_name is None]
    if not usable:
        if unused:
            return (
                Verdict(
                    BAD,
                    unused[0].name,
                    tr("This build of llama.cpp cannot use the GPU."),
                    tr("Install the Vulkan or CUDA build: README, under “With your GPU”."),
                ),
            )
        return (
            Verdict(
                WARNING,
                "GPU",
                tr("No GPU was found; everything is computed by the processor."),
                tr("If there is one, install its driver and the GPU build (README)."),
            ),
        )
    readings = {gpu.device_name: gpu for gpu in snapshot.gpus}
    verdicts = [_gpu(device, readings.get(device.name)) for device in usable]
    verdicts += [
        Verdict(
            WARNING,
            gpu.name,
            tr("llama.cpp does not see this GPU."),
            tr("Another build of llama-cpp-python may use it (README, “With your GPU”)."),
        )
        for gpu in unused
    ]
    return tuple(verdicts)


def _gpu(device: BackendDevice, reading: GpuReading | None) -> Verdict:
    subject = f"{device.name} ({device.description})"
    if _is_software(device):
        return Verdict(
            WARNING,
            subject,
            tr("This is no real GPU but a program that imitates one."),
            tr("Install the driver of your GPU."),
        )
    free = device.free_bytes if reading is None else reading.free_bytes
    total = device.total_bytes if reading is None else reading.total_bytes
    if reading is not None and reading.throttle_reasons:
        return Verdict(
            WARNING,
            subject,
            tr("The GPU is slowed down: {reasons}.").format(
                reasons=", ".join(reading.throttle_reasons)
            ),
            tr("Check its cooling and power supply."),
        )
    if reading is not None and (reading.temperature_c or 0) >= _HOT_C:
        return Verdict(
            WARNING,
            subject,
            tr("The GPU is hot: {degrees:.0f} °C.").format(degrees=reading.temperature_c),
            tr("Check its cooling."),
        )
    if free is None:
        return Verdict(GOOD, subject, tr("llama.cpp can use this GPU."))
    if free < _LITTLE_VRAM_BYTES:
        return Verdict(
            WARNING,
            subject,
            tr("Only {free} of {total} VRAM is free.").format(
                free=format_bytes(free), total=format_bytes(total)
            ),
            tr("Close programs that use the GPU."),
        )
    return Verdict(
        GOOD,
        subject,
        tr("{free} of {total} VRAM is free.").format(
            free=format_bytes(free), total=format_bytes(total)
        ),
    )


def _is_software(device: BackendDevice) -> bool:
    name = device.description.lower()
    return "llvmpipe" in name or "swiftshader" in name or "basic render" in name


def _ram(snapshot: MachineSnapshot) -> Verdict:
    text = tr("{free} of {total} RAM is free.").format(
        free=format_bytes(snapshot.ram_available_bytes),
        total=format_bytes(snapshot.ram_total_bytes),
    )
    if snapshot.ram_total_bytes < _LITTLE_RAM_BYTES:
        return Verdict(BAD, "RAM", text, tr("Only small models will run here."))
    if snapshot.ram_available_bytes < _LITTLE_RAM_BYTES:
        return Verdict(WARNING, "RAM", text, tr("Close other programs before a large model."))
    if snapshot.ram_total_bytes < _USUAL_RAM_BYTES:
        return Verdict(
            WARNING, "RAM", text, tr("Models of 20 GiB and more will be read from the disk.")
        )
    return Verdict(GOOD, "RAM", text)


def _swap(snapshot: MachineSnapshot) -> tuple[Verdict, ...]:
    if (snapshot.swap_used_bytes or 0) < _MUCH_SWAP_BYTES:
        return ()
    return (
        Verdict(
            WARNING,
            tr("swap"),
            tr("{used} is swapped out to the disk.").format(
                used=format_bytes(snapshot.swap_used_bytes)
            ),
            tr("Close other programs: a model that is swapped out crawls."),
        ),
    )


def _cpu(system_info: str, physical_cores: int | None) -> tuple[Verdict, ...]:
    verdicts = []
    if "AVX = 1" in system_info and "AVX2 = 1" not in system_info:
        verdicts.append(
            Verdict(
                WARNING,
                "CPU",
                tr("llama.cpp was built without AVX2."),
                tr("If the processor has it, a native build is about twice as fast."),
            )
        )
    if physical_cores is not None and physical_cores < 4:
        verdicts.append(
            Verdict(
                WARNING,
                "CPU",
                tr("The processor has few cores ({n}).").format(n=physical_cores),
                tr("Experts in RAM are computed by it, so keep as many on the GPU as fit."),
            )
        )
    return tuple(verdicts) or (Verdict(GOOD, "CPU", tr("Nothing speaks against the processor.")),)
