"""What this machine's memories can do, for the commands that foretell or measure speeds."""

from __future__ import annotations

import argparse
from pathlib import Path

from moelauncher.commands.kept_measurements import open_store
from moelauncher.commands.session import Session
from moelauncher.commands.terminal import note
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.memory.placement import RAM
from moelauncher.core.paths import app_paths
from moelauncher.core.program.machine_identity import machine_identity
from moelauncher.core.speed.device_bandwidth import BandwidthFile, Bandwidths
from moelauncher.core.speed.measurement import StopSpeed, model_fingerprint, speeds_by_stop
from moelauncher.core.speed.speed_estimate import SpeedBasis, basis_of
from moelauncher.core.speed.speed_outlook import speed_outlook
from moelauncher.core.speed.speed_prediction import hardware_model
from moelauncher.core.speed.tune_plan import tune_plan
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import describe_devices
from moelauncher.meters.meter_thread import default_sources, read_machine


def known_bandwidths(
    basedir: Path | None, machine: str, gpus: list[str], child: Child
) -> Bandwidths:
    """What is kept of ``machine``; what is missing is measured now, a second a device."""
    file = BandwidthFile(app_paths(basedir).bandwidths_file)
    known = file.read(machine)
    missing = [name for name in (RAM, *gpus) if name not in known.bytes_s]
    if not missing:
        return known
    found = measure_bandwidths(child, missing)
    try:
        return file.write(machine, found)
    except LauncherError as error:
        note(error.sentence)
        return Bandwidths({**known.bytes_s, **found})


def speed_basis(
    options: argparse.Namespace,
    facts: ModelFacts,
    machine: Machine,
    context: ContextSettings,
    child: Child,
) -> SpeedBasis:
    """What is known so far, for a plan: nothing is measured for it.

    Measurements of the model, else bandwidths of this machine, else usual hardware; always the
    last for GPUs that are only pretended.
    """
    if any(gpu.pretended for gpu in machine.gpus):
        return basis_of(())
    try:
        devices = describe_devices(child)
    except LauncherError:  # told already where the machine was described
        return basis_of(())
    snapshot = read_machine(default_sources(lambda: devices))
    name = machine_identity(devices, snapshot, "").name
    known = BandwidthFile(app_paths(options.basedir).bandwidths_file).read(name)
    hardware = basis_of((), hardware_model(known, [gpu.name for gpu in machine.gpus]))
    plan = tune_plan(facts, machine, LaunchChoices(0, None, options.which, context, True))
    return speed_outlook(plan, _measured(options, facts, name), hardware).basis


def _measured(options: argparse.Namespace, facts: ModelFacts, machine: str) -> list[StopSpeed]:
    if not app_paths(options.basedir).measurements_file.exists():
        return []
    store = open_store(options)
    if store is None:
        return []
    try:
        found = store.of_model(model_fingerprint(facts), machine)
    except LauncherError as error:
        note(error.sentence)
        return []
    finally:
        store.close()
    return list(speeds_by_stop(found, dense=not facts.expert_layers))


def hardware_basis(basedir: Path | None, machine: str, session: Session) -> SpeedBasis:
    """What the speed of a model that is not measured is estimated from."""
    gpus = [gpu.name for gpu in session.machine.gpus]
    known = known_bandwidths(basedir, machine, gpus, session.child)
    return basis_of((), hardware_model(known, gpus))
