"""The doctor's facts and verdicts as rows to show, as text to copy, and as a document.

In: :class:`DoctorFacts` and verdicts. Out: text, in which the home folder is ``~``. Pure but
for asking where that is; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from moelauncher.core.machine import BackendDevice
from moelauncher.core.program.doctor_facts import (
    VULKAN_ANSWERS,
    VULKAN_CRASHES,
    VULKAN_MISSING,
    VULKAN_REFUSES,
    DoctorFacts,
)
from moelauncher.core.program.machine_check import worst
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.core.verdict import Verdict

MARKS = {"good": "ok", "warning": "!", "bad": "!!"}


def fact_rows(facts: DoctorFacts) -> list[tuple[str, str]]:
    """What was found, without judging it: label and value."""
    build, snapshot = facts.build, facts.snapshot
    cores = tr("{physical} cores, {logical} threads").format(
        physical=_or_unknown(facts.physical_cores), logical=_or_unknown(facts.logical_cores)
    )
    rows = [
        ("MoE Launcher", _program(facts)),
        (tr("system"), facts.system),
        (tr("processor"), f"{facts.cpu_name or tr('unknown')}, {cores}"),
        (
            "RAM",
            tr("{free} of {total} free").format(
                free=format_bytes(snapshot.ram_available_bytes),
                total=format_bytes(snapshot.ram_total_bytes),
            ),
        ),
        ("llama.cpp", _build(facts)),
    ]
    if build.features:
        rows.append((tr("features"), _features(build.features)))
    if build.cpu_variants:
        rows.append((tr("variants"), ", ".join(build.cpu_variants)))
    rows += [(tr("GPU on the bus"), _bus_gpu(facts, at)) for at in range(len(facts.sightings.bus))]
    rows += _meter_rows(facts)
    rows += _vulkan_rows(facts)
    rows += [(tr("llama.cpp's device"), _device(device)) for device in facts.sightings.devices]
    rows += list(facts.folders.items())
    return [(label, hide_home(value)) for label, value in rows]


def report_text(facts: DoctorFacts, verdicts: Sequence[Verdict]) -> str:
    """All of it, to copy into a report of a problem."""
    width = max(len(label) for label, _ in fact_rows(facts)) + 2
    lines = [f"{label:<{width}}{value}" for label, value in fact_rows(facts)]
    lines.append("")
    lines += [
        hide_home(f"{MARKS[v.level]:<3}{v.subject}: {v.text} {v.advice}".rstrip()) for v in verdicts
    ]
    return "\n".join(lines) + "\n"


def report_document(facts: DoctorFacts, verdicts: Sequence[Verdict]) -> dict[str, object]:
    """The same for programs."""
    build, snapshot, seen = facts.build, facts.snapshot, facts.sightings
    disk = facts.disk
    return {
        "moelauncher": facts.version,
        "python": facts.python,
        "python_path": hide_home(facts.program),
        "system": facts.system,
        "cpu": facts.cpu_name,
        "physical_cores": facts.physical_cores,
        "logical_cores": facts.logical_cores,
        "ram_total_bytes": snapshot.ram_total_bytes,
        "ram_available_bytes": snapshot.ram_available_bytes,
        "ram_bytes_per_s": facts.ram_bytes_per_s,
        "swap_used_bytes": snapshot.swap_used_bytes,
        "disk": None if disk is None else {**asdict(disk), "folder": hide_home(str(disk.folder))},
        "llama_cpp_python": build.version or None,
        "llama_cpp_library": hide_home(build.library_folder) or None,
        "llama_cpp_features": build.features or None,
        "cpu_variant": build.cpu_variant,
        "cpu_variants": list(build.cpu_variants),
        "gpu_modules": list(build.gpu_modules),
        "gpu_offload": build.gpu_offload,
        "build_notes": [hide_home(note) for note in build.notes],
        "build": dict(facts.package),
        **{name: hide_home(folder) for name, folder in facts.folders.items()},
        "devices": [asdict(device) for device in seen.devices],
        "gpus": [asdict(gpu) for gpu in snapshot.gpus],
        "bus_gpus": [asdict(card) for card in seen.bus],
        "vulkan": None if seen.vulkan is None else asdict(seen.vulkan),
        "verdicts": [
            {**asdict(v), "text": hide_home(v.text), "advice": hide_home(v.advice)}
            for v in verdicts
        ],
        "verdict": worst(verdicts),
    }


def hide_home(text: str, home: Path | None = None) -> str:
    """``text`` with the home folder as ``~``, wherever it stands in it."""
    folder = str(home if home is not None else Path.home()).rstrip("/\\")
    if len(folder) < 2:  # no home, or the root: nothing personal in it
        return text
    # Not in the middle of a longer name; either slash serves on Windows.
    pattern = re.escape(folder).replace("\\\\", r"[\\/]") + r"(?=$|[\\/\s\"'”:;,.)])"
    flags = re.IGNORECASE if "\\" in folder else 0
    return re.sub(pattern, "~", text, flags=flags)


def _program(facts: DoctorFacts) -> str:
    built = facts.package.get("commit"), facts.package.get("built")
    made = ", ".join(str(part) for part in built if part)
    return f"{facts.version} ({made or 'Python ' + facts.python}), {facts.program}"


def _build(facts: DoctorFacts) -> str:
    build = facts.build
    if build.problem:
        return build.problem
    parts = [f"llama-cpp-python {build.version}", build.cpu_variant, *build.gpu_modules]
    return ", ".join([part for part in parts if part] + [build.library_folder])


def _features(text: str) -> str:
    """llama.cpp's "CPU : SSE3 = 1 | AVX = 1 |" as names; what it does not have is left out."""
    return ", ".join(re.findall(r"(\w+) = 1\b", text)) or text


def _device(device: BackendDevice) -> str:
    what = f"{device.name}: {device.description}, {device.backend}"
    if device.kind == "cpu":
        return what  # it takes the whole of RAM for free
    sizes = tr("{free} of {total} free").format(
        free=format_bytes(device.free_bytes), total=format_bytes(device.total_bytes)
    )
    return f"{what}, {sizes}"


def _bus_gpu(facts: DoctorFacts, at: int) -> str:
    card = facts.sightings.bus[at]
    driver = " ".join(part for part in (card.driver, card.driver_version) if part)
    address = f" ({card.pci_address})" if card.pci_address else ""
    return f"{card.name}{address}, " + (
        tr("driver {version}").format(version=driver) if driver else tr("no driver")
    )


def _meter_rows(facts: DoctorFacts) -> list[tuple[str, str]]:
    rows = []
    for gpu in facts.snapshot.gpus:
        if gpu.source.startswith("llama.cpp"):
            continue  # a device row says the same
        parts = [
            gpu.name,
            tr("{used} of {total} used").format(
                used=format_bytes(gpu.used_bytes), total=format_bytes(gpu.total_bytes)
            ),
        ]
        if gpu.pcie:
            parts.append(f"PCIe {gpu.pcie}")
        if gpu.driver:
            parts.append(tr("driver {version}").format(version=gpu.driver))
        rows.append((gpu.source, ", ".join(parts)))
    return rows


def _vulkan_rows(facts: DoctorFacts) -> list[tuple[str, str]]:
    vulkan = facts.sightings.vulkan
    if vulkan is None:
        return []
    rows = [
        (
            "Vulkan",
            f"{gpu.name}, {gpu.kind}, "
            + tr("driver {version}").format(version=gpu.driver_version)
            + f", Vulkan {gpu.api_version}, {format_bytes(gpu.total_bytes)}",
        )
        for gpu in vulkan.gpus
    ]
    if not rows:
        states = {
            VULKAN_MISSING: tr("its loader is missing"),
            VULKAN_REFUSES: tr("it does not start"),
            VULKAN_CRASHES: tr("its driver ends the program that asks"),
            VULKAN_ANSWERS: tr("it lists no GPU"),
        }
        parts = (states[vulkan.state], vulkan.problem)
        rows.append(("Vulkan", ": ".join(part for part in parts if part)))
    if vulkan.drivers:
        rows.append((tr("Vulkan drivers"), ", ".join(vulkan.drivers)))
    return rows


def _or_unknown(number: int | None) -> str:
    return tr("unknown") if number is None else str(number)
