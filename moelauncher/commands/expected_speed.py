"""What this machine's memories can do, for the commands that foretell or measure speeds."""

from __future__ import annotations

from pathlib import Path

from moelauncher.commands.session import Session
from moelauncher.commands.terminal import note
from moelauncher.core.device_bandwidth import BandwidthFile, Bandwidths
from moelauncher.core.errors import LauncherError
from moelauncher.core.forecast import RAM
from moelauncher.core.paths import app_paths
from moelauncher.core.speed_estimate import SpeedBasis, basis_of
from moelauncher.core.speed_prediction import hardware_model
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.child import Child


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


def hardware_basis(basedir: Path | None, machine: str, session: Session) -> SpeedBasis:
    """What the speed of a model that is not measured is estimated from."""
    gpus = [gpu.name for gpu in session.machine.gpus]
    known = known_bandwidths(basedir, machine, gpus, session.child)
    return basis_of((), hardware_model(known, gpus))
