"""Is this machine set up to run models well? One verdict a question, with what to do.

In: :class:`DoctorFacts`. Out: :class:`Verdict` values, in the order of a reader's questions.
Pure; any thread. What concerns GPUs is in ``gpu_check``.
"""

from __future__ import annotations

from collections.abc import Sequence

from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.program.doctor_facts import DiskSpeed, DoctorFacts
from moelauncher.core.program.gpu_check import check_gpus, is_software
from moelauncher.core.translate import tr
from moelauncher.core.units import GIB, format_bytes, format_duration
from moelauncher.core.verdict import BAD, GOOD, WARNING, Verdict

#: Below this even a small MoE model does not fit beside the system.
_LITTLE_RAM_BYTES = 8 * GIB
_USUAL_RAM_BYTES = 24 * GIB
#: A swapped-out machine reads weights from the disk at every token.
_MUCH_SWAP_BYTES = 1 * GIB
#: One module of slow memory; two of the usual kind read twice as much and more.
_SLOW_RAM = 20e9
#: Below an SSD's speed, and below a usual hard disk's.
_USUAL_DISK, _SLOW_DISK = 300e6, 80e6


def check_machine(facts: DoctorFacts) -> tuple[Verdict, ...]:
    """All verdicts, in the order of a reader's questions."""
    return (
        *_build(facts),
        *check_gpus(facts.snapshot, facts.sightings),
        _ram(facts.snapshot),
        *_ram_speed(facts.ram_bytes_per_s),
        *_swap(facts.snapshot),
        *_cpu(facts),
        *_disk(facts.disk),
        *_variables(facts),
    )


def worst(verdicts: Sequence[Verdict]) -> str:
    """The worst level of all."""
    levels = {verdict.level for verdict in verdicts}
    return BAD if BAD in levels else WARNING if WARNING in levels else GOOD


def _build(facts: DoctorFacts) -> tuple[Verdict, ...]:
    build = facts.build
    if build.problem:
        advice = (
            tr("Install MoE Launcher again.")
            if facts.sightings.packaged
            else tr("Install llama-cpp-python again.")
        )
        return (Verdict(BAD, "llama.cpp", build.problem, advice),)
    parts = ", ".join(part for part in (build.version, *build.gpu_modules) if part)
    text = tr("llama.cpp starts ({what}).").format(what=parts) if parts else tr("llama.cpp starts.")
    advice = tr("The lines on the GPU say what to do.")
    if build.gpu_modules and _has_gpu(facts):
        names = ", ".join(build.gpu_modules)
        advice = tr("GPUs are used through {names} all the same.").format(names=names)
    notes = (Verdict(WARNING, "llama.cpp", note, advice) for note in build.notes)
    return (Verdict(GOOD, "llama.cpp", text), *notes)


def _has_gpu(facts: DoctorFacts) -> bool:
    return any(
        device.kind in ("gpu", "igpu") and not is_software(device.description)
        for device in facts.sightings.devices
    )


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
            tr("Swap"),
            tr("{used} is swapped out to the disk.").format(
                used=format_bytes(snapshot.swap_used_bytes)
            ),
            tr("Close other programs: a model that is swapped out crawls."),
        ),
    )


def _ram_speed(bytes_per_s: float | None) -> tuple[Verdict, ...]:
    if bytes_per_s is None:
        return ()
    text = tr("RAM is read at {rate:.1f} GB/s.").format(rate=bytes_per_s / 1e9)
    subject = tr("RAM speed")
    if bytes_per_s < _SLOW_RAM:
        advice = tr(
            "Experts in RAM answer only as fast as it is read: two equal memory modules, and the "
            "memory profile (XMP, EXPO) switched on in the BIOS, can double it."
        )
        return (Verdict(WARNING, subject, text, advice),)
    return (Verdict(GOOD, subject, text),)


def _disk(disk: DiskSpeed | None) -> tuple[Verdict, ...]:
    if disk is None:
        return ()
    subject = tr("Disk")
    if disk.bytes_per_s is None:
        text = tr("The speed of {folder} is unknown: {reason}.").format(
            folder=disk.folder, reason=disk.problem or tr("it was not measured")
        )
        return (Verdict(GOOD, subject, text),)
    text = tr("{folder} is read at {rate:.0f} MB/s: 20 GiB take {time}.").format(
        folder=disk.folder,
        rate=disk.bytes_per_s / 1e6,
        time=format_duration(20 * GIB / disk.bytes_per_s),
    )
    if disk.bytes_per_s >= _USUAL_DISK:
        return (Verdict(GOOD, subject, text),)
    level = WARNING if disk.bytes_per_s >= _SLOW_DISK else BAD
    return (Verdict(level, subject, text, tr("Keep models on an SSD in this machine.")),)


def _variables(facts: DoctorFacts) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(
            WARNING,
            name,
            tr("It names a folder that is not there: {folder}.").format(folder=folder),
            tr("An uninstalled toolkit left it; remove the variable."),
        )
        for name, folder in facts.stale_variables.items()
        if not any(name in note for note in facts.build.notes)
    )


def _cpu(facts: DoctorFacts) -> tuple[Verdict, ...]:
    verdicts = []
    physical_cores, build = facts.physical_cores, facts.build
    best = build.cpu_variants[0] if build.cpu_variants else None
    if build.cpu_variant is not None and build.cpu_variant != best:
        verdicts.append(
            Verdict(
                WARNING,
                "CPU",
                tr("llama.cpp runs as “{used}”, though this processor can run “{best}”.").format(
                    used=build.cpu_variant, best=best
                ),
                tr("Set “Processor variant” back to auto."),
            )
        )
    if "AVX = 1" in build.features and "AVX2 = 1" not in build.features and best is None:
        verdicts.append(
            Verdict(
                WARNING,
                "CPU",
                tr("llama.cpp was built without AVX2."),
                tr("If the processor has it, a native build is about twice as fast."),
            )
        )
    if physical_cores is not None and physical_cores < 4:
        text = tr("The processor has few cores ({n}).").format(n=physical_cores)
        advice = (
            tr("Experts in RAM are computed by it, so keep as many on the GPU as fit.")
            if _has_gpu(facts)
            else tr("It computes everything here, so choose small models with few active experts.")
        )
        verdicts.append(Verdict(WARNING, "CPU", text, advice))
    if verdicts:
        return tuple(verdicts)
    if best is None or physical_cores is None:
        return (Verdict(GOOD, "CPU", tr("Nothing speaks against the processor.")),)
    text = tr("{n} cores, and llama.cpp's best variant for them ({variant}).")
    return (Verdict(GOOD, "CPU", text.format(n=physical_cores, variant=best)),)
