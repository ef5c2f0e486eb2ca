"""The machine that a plan is made for: this one, or one that ``--gpu`` and ``--ram`` pretend."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from moelauncher.commands.arguments import ALL, AUTO, GpuWish
from moelauncher.commands.terminal import note
from moelauncher.core.errors import LauncherError, WrongArguments
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory import launch_plan
from moelauncher.core.memory.auto_placement import Machine, auto_placement, place_at
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.default_gpus import allowed_devices
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.kv_cache import kv_type_problem
from moelauncher.core.memory.margins import Margins
from moelauncher.core.memory.own_share import OwnShare
from moelauncher.core.memory.placement import Placement, PlacementDevice, expert_stops
from moelauncher.core.paths import app_paths
from moelauncher.core.program import settings as keys
from moelauncher.core.program.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.engine.child import Child
from moelauncher.engine.dry_run import describe_devices, dry_run_or_problem
from moelauncher.engine.weight_support import refused_weights
from moelauncher.meters.meter_thread import default_sources, read_machine


@dataclass(frozen=True)
class Plan:
    """A placement, and what llama.cpp itself said of it (None where it was not asked)."""

    placement: Placement
    dry_run: DryRunResult | None


def context_of(options: argparse.Namespace) -> ContextSettings:
    """The context settings that the options ask for."""
    return ContextSettings(
        n_ctx=options.ctx,
        kv_type=options.kv,
        n_ubatch=options.ubatch,
        n_threads=getattr(options, "threads", None),
    )


def machine_of(options: argparse.Namespace, child: Child, facts: ModelFacts) -> Machine:
    """GPUs and memory, and what of ``facts`` the GPUs refuse. With ``--gpu`` none is touched."""
    wishes: list[GpuWish] = getattr(options, "gpu", None) or []
    if wishes:
        return _pretended(options, wishes)
    try:
        chosen = Settings.load(app_paths(options.basedir).settings_file).get(keys.GPU_DEVICES)
        devices = list(allowed_devices(describe_devices(child), chosen))
    except LauncherError as error:
        note(error.sentence)
        devices = []
    snapshot = read_machine(default_sources(lambda: devices))
    machine = launch_plan.machine_of(devices, snapshot, OwnShare(), {}, options.leave_free)
    names = [gpu.name for gpu in machine.gpus]
    try:
        refused = refused_weights(child, facts, names)
    except LauncherError as error:
        note(error.sentence)
        refused = {}
    return _with_ram(replace(machine, refused_weights=refused), options)


def _pretended(options: argparse.Namespace, wishes: list[GpuWish]) -> Machine:
    names = [wish.name for wish in wishes]
    if len(set(names)) != len(names):
        raise WrongArguments(
            tr("Two GPUs have one name: {names}.").format(names=", ".join(names)),
            tr("Give each a name of its own, for example A=12GiB and B=12GiB."),
        )
    leave_free = {} if options.leave_free is None else dict.fromkeys(names, options.leave_free)
    snapshot = read_machine([])
    machine = Machine(
        gpus=tuple(
            PlacementDevice(wish.name, wish.free_bytes, wish.free_bytes, pretended=True)
            for wish in wishes
        ),
        ram_free_bytes=snapshot.ram_available_bytes,
        ram_total_bytes=snapshot.ram_total_bytes,
        margins=Margins(leave_free_bytes=leave_free),
    )
    return _with_ram(machine, options)


def _with_ram(machine: Machine, options: argparse.Namespace) -> Machine:
    ram_bytes: int | None = getattr(options, "ram", None)
    if ram_bytes is None:
        return machine
    return replace(machine, ram_free_bytes=ram_bytes, ram_total_bytes=ram_bytes)


def plan_for(
    facts: ModelFacts,
    machine: Machine,
    context: ContextSettings,
    wish: int | str,
    child: Child | None,
    *,
    which: str = "first",
    tensor_split: tuple[float, ...] | None = None,
) -> Plan:
    """The placement for ``wish`` (a stop, "all" or "auto"), with llama.cpp's dry run of it.

    ``child`` None, or pretended GPUs: nothing is asked, the formula stays. Raises
    WrongArguments for a KV type that the model cannot have, and a split for other GPUs.
    """
    if problem := kv_type_problem(facts, context.kv_type):
        raise WrongArguments(problem)
    asked: dict[Placement, DryRunResult] = {}
    asks = child is not None and not any(gpu.pretended for gpu in machine.gpus)

    def dry_run_of(placement: Placement) -> DryRunResult | None:
        if child is None or not asks:
            return None
        asked[placement] = dry_run_or_problem(child, facts.path, placement, context, facts=facts)
        return asked[placement]

    if wish == AUTO:
        placement = auto_placement(
            facts,
            machine,
            context,
            which=which,
            tensor_split=tensor_split,
            dry_run_of=dry_run_of if asks else None,
        ).placement
    else:
        last = len(expert_stops(facts))
        step = last if wish == ALL else int(wish)
        if wish != 0 and not last:
            note(tr("This model is dense: it has no experts to move."))
        elif step > last:
            note(
                tr("The model has {last} expert layers to move, so {step} means all.").format(
                    last=last, step=step
                )
            )
        placement = place_at(
            facts, machine, context, min(step, last), which=which, tensor_split=tensor_split
        )
    dry_run = asked.get(placement)
    return Plan(placement, dry_run if dry_run is not None else dry_run_of(placement))
