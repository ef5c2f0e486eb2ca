"""``moelauncher doctor``: what this machine and this installation are, and what to mend."""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from moelauncher import __version__
from moelauncher.commands.arguments import add_json
from moelauncher.commands.helper_process import make_child
from moelauncher.commands.terminal import out, out_json, table
from moelauncher.core.build_facts import build_facts
from moelauncher.core.errors import LauncherError
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.machine_check import WARNING, Verdict, check_machine, worst
from moelauncher.core.paths import app_paths, shortened
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import InstalledBuild, describe_build, describe_devices
from moelauncher.meters.meter_thread import default_sources, read_machine
from moelauncher.meters.ram import cpu_facts
from moelauncher.meters.source import BACKEND_SOURCE

_MARKS = {"good": "ok", "warning": "!", "bad": "!!"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``doctor``."""
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print facts and verdicts. A bad verdict is an answer: exit status 0."""
    child = make_child(options, try_again=True)
    try:
        build, devices, problem = _ask(child)
    finally:
        child.close()
    snapshot = read_machine(default_sources(lambda: devices))
    cores = cpu_facts()
    verdicts = check_machine(
        snapshot,
        devices,
        build_problem=problem,
        system_info="" if build is None else build.system_info,
        physical_cores=cores.physical_cores,
    )
    if build is not None:
        left_out = (Verdict(WARNING, "llama.cpp", note) for note in build.notes)
        verdicts = (*verdicts, *left_out)
    paths = app_paths(options.basedir)
    facts: dict[str, object] = {
        "moelauncher": __version__,
        "python": platform.python_version(),
        "python_path": shortened(sys.executable),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu_name(),
        "physical_cores": cores.physical_cores,
        "logical_cores": cores.logical_cores,
        "ram_total_bytes": snapshot.ram_total_bytes,
        "ram_available_bytes": snapshot.ram_available_bytes,
        "swap_used_bytes": snapshot.swap_used_bytes,
        "llama_cpp_python": None if build is None else build.version,
        "llama_cpp_library": None if build is None else shortened(build.library_folder),
        "llama_cpp_features": None if build is None else build.system_info.strip(),
        "cpu_variant": None if build is None else build.modules.cpu_variant,
        "gpu_offload": None if build is None else build.gpu_offload,
        "config": shortened(paths.config),
        "data": shortened(paths.data),
        "cache": shortened(paths.cache),
        "logs": shortened(paths.logs),
    }
    if options.json:
        out_json(
            {
                **facts,
                "build": build_facts(),
                "build_notes": [] if build is None else list(build.notes),
                "cpu_variants": [] if build is None else list(build.modules.cpu_usable),
                "devices": [asdict(device) for device in devices],
                "gpus": [asdict(gpu) for gpu in snapshot.gpus],
                "gpu_note": snapshot.gpu_note,
                "verdicts": [asdict(verdict) for verdict in verdicts],
                "verdict": worst(verdicts),
            }
        )
        return 0
    _print(facts, [*_device_rows(devices), *_driver_rows(snapshot)], verdicts)
    return 0


def _ask(child: Child) -> tuple[InstalledBuild | None, list[BackendDevice], str]:
    build: InstalledBuild | None = None
    try:
        build = describe_build(child)
        return build, describe_devices(child), ""
    except LauncherError as error:
        return build, [], error.message


def _cpu_name() -> str | None:
    try:  # Linux: platform.processor() is empty or only "x86_64" there
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or None


def _device_rows(devices: list[BackendDevice]) -> list[tuple[str, str]]:
    """What llama.cpp can compute on."""
    return [
        (device.name, f"{device.description}, {device.backend}, {format_bytes(device.total_bytes)}")
        for device in devices
    ]


def _driver_rows(snapshot: MachineSnapshot) -> list[tuple[str, str]]:
    """What the drivers say of the GPUs."""
    rows = []
    for gpu in snapshot.gpus:
        if gpu.source.startswith(BACKEND_SOURCE):
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


def _print(
    facts: dict[str, object], devices: list[tuple[str, str]], verdicts: tuple[Verdict, ...]
) -> None:
    rows = [
        (name.removesuffix("_bytes").replace("_", " "), _text(name, value))
        for name, value in facts.items()
    ]
    out("\n".join(f"{name:<20} {text}" for name, text in [*rows, *devices]))
    out()
    lines = [(_MARKS[v.level], v.subject, f"{v.text} {v.advice}".strip()) for v in verdicts]
    out(table(("", tr("what"), tr("verdict")), lines, right=frozenset()))


def _text(name: str, value: object) -> str:
    if value is None:
        return tr("unknown")
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    return str(value)
