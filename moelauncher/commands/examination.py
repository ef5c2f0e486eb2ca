"""Looks at this machine and this installation for the doctor: of the command and of the window.

In: the child process and the user's folders. Out: :class:`DoctorFacts`. Takes some seconds
(RAM and disk are measured for one second each); a command's thread, or a pool job.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moelauncher import __version__
from moelauncher.core.errors import LauncherError
from moelauncher.core.library.library_settings import skipped_sources
from moelauncher.core.library.model_folders import default_model_folders
from moelauncher.core.library.slow_places import slow_last
from moelauncher.core.machine import BackendDevice
from moelauncher.core.memory.placement import RAM
from moelauncher.core.paths import AppPaths
from moelauncher.core.program import settings as keys
from moelauncher.core.program.build_facts import build_facts
from moelauncher.core.program.doctor_facts import BuildState, DoctorFacts, GpuSightings
from moelauncher.core.program.gpu_check import all_used
from moelauncher.core.program.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.core.windows_registry import processor_name
from moelauncher.engine.backend_modules import BACKENDS_VARIABLE
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.broken_backends import BrokenBackends
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import InstalledBuild, describe_build, describe_devices
from moelauncher.engine.vulkan_survey import survey_vulkan
from moelauncher.meters.disk_speed import disk_speed
from moelauncher.meters.gpu_bus import bus_gpus
from moelauncher.meters.meter_thread import default_sources, read_machine
from moelauncher.meters.ram import cpu_facts

#: Toolkits that name their folders in variables, which stay behind when they go.
_TOOLKIT_VARIABLES = ("CUDA_PATH", "HIP_PATH")


def examine(
    child: Child,
    paths: AppPaths,
    settings: Settings,
    *,
    begins: Callable[[str], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> DoctorFacts:
    """Everything. ``begins`` hears what is looked at now, in words."""
    begins(tr("Asking llama.cpp and the graphics drivers"))
    sightings = see_gpus(child)
    devices = list(sightings.devices)
    snapshot = read_machine(default_sources(lambda: devices))
    cores = cpu_facts()
    begins(tr("Measuring main memory"))
    ram = measure_bandwidths(child, [RAM], cancelled=cancelled).get(RAM)
    begins(tr("Measuring the disk of the models"))
    disk = disk_speed(_model_folders(paths, settings), cancelled=cancelled)
    return DoctorFacts(
        version=__version__,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        program=sys.executable,
        snapshot=snapshot,
        sightings=sightings,
        cpu_name=_cpu_name(devices),
        physical_cores=cores.physical_cores,
        logical_cores=cores.logical_cores,
        ram_bytes_per_s=ram,
        disk=disk,
        folders={
            "config": str(paths.config),
            "data": str(paths.data),
            "cache": str(paths.cache),
            "logs": str(paths.logs),
        },
        package=build_facts(),
        stale_variables=stale_variables(os.environ),
    )


def examine_anew(
    paths: AppPaths,
    settings: Settings,
    begins: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> DoctorFacts:
    """Everything, in a child of its own: what crashed before is tried again."""
    broken = BrokenBackends(paths.broken_backends_file)
    broken.forget()
    child = Child(broken=broken)
    try:
        return examine(child, paths, settings, begins=begins, cancelled=cancelled)
    finally:
        child.close()


def see_gpus_at_start(child: Child) -> GpuSightings:
    """Who sees which GPU; Vulkan itself is asked only where llama.cpp leaves a card out."""
    seen = see_gpus(child, ask_vulkan=False)
    return seen if all_used(seen) else see_gpus(child)


def see_gpus(child: Child, *, ask_vulkan: bool = True) -> GpuSightings:
    """Who sees which GPU, without the meters. Never raises: a build that does not start is told."""
    build, devices = _ask(child)
    vulkan = survey_vulkan(lambda: child.request("vulkan")) if ask_vulkan else None
    return GpuSightings(
        devices=tuple(devices),
        bus=bus_gpus(),
        vulkan=vulkan,
        build=build,
        wish=os.environ.get(BACKENDS_VARIABLE, ""),
        packaged=bool(getattr(sys, "frozen", False)),
        is_windows=sys.platform == "win32",
    )


def stale_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of the toolkits' variables that name folders which are not there."""
    return {
        name: environ[name]
        for name in _TOOLKIT_VARIABLES
        if environ.get(name) and not Path(environ[name], "bin").is_dir()
    }


def _ask(child: Child) -> tuple[BuildState, Sequence[BackendDevice]]:
    build = BuildState()
    try:
        build = _build_state(describe_build(child))
        return build, describe_devices(child)
    except LauncherError as error:
        return BuildState(problem=error.message, version=build.version), ()


def _build_state(build: InstalledBuild) -> BuildState:
    modules = build.modules
    return BuildState(
        version=build.version,
        library_folder=str(build.library_folder),
        features=build.system_info.strip(),
        cpu_variant=modules.cpu_variant,
        cpu_variants=modules.cpu_usable,
        gpu_modules=modules.gpu,
        gpu_modules_found=modules.gpu_found,
        gpu_offload=build.gpu_offload,
        notes=build.notes,
    )


def _model_folders(paths: AppPaths, settings: Settings) -> list[Path]:
    """Where the user's models lie, where other programs' do, then where the program's own are."""
    chosen = [Path(text).expanduser() for text in settings.get(keys.MODEL_FOLDERS)]
    folders = [path if path.is_dir() else path.parent for path in chosen]
    others = default_model_folders(skip=skipped_sources(settings))
    # A network drive that is gone would be waited for.
    return slow_last([*folders, paths.models, *others, paths.sample_folder])


def _cpu_name(devices: Sequence[BackendDevice]) -> str | None:
    for device in devices:
        if device.kind == "cpu" and device.description not in ("", "CPU"):
            return device.description
    return processor_name() or platform.processor() or None
