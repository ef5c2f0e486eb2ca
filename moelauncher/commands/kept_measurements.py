"""The store of measurements for the commands that measure: opened, added to, never in the way.

What cannot be kept is said once on stderr; the measuring goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator

from moelauncher.commands.session import Session
from moelauncher.commands.terminal import note
from moelauncher.core.engine_protocol import GenerationStats, LoadReport
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.layer_split import layer_split, no_layer_split
from moelauncher.core.memory.placement import Placement
from moelauncher.core.paths import app_paths
from moelauncher.core.program.machine_identity import machine_identity
from moelauncher.core.speed.conditions import (
    Conditions,
    ConditionWatch,
    condition_notes,
    disturbance,
)
from moelauncher.core.speed.measurement import (
    BENCH,
    EXPERTS,
    LAYERS,
    Machine,
    Measurement,
    model_fingerprint,
)
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.speed.tune_events import setting_of
from moelauncher.core.translate import tr
from moelauncher.engine.bench import BenchCase, memory_taken
from moelauncher.engine.dry_run import describe_build, describe_devices
from moelauncher.meters.condition_watch import MachineWatch
from moelauncher.meters.meter_thread import default_sources, read_machine


def open_store(options: argparse.Namespace) -> MeasurementStore | None:
    """The store of ``--basedir``; None, and a note, where it cannot be opened."""
    try:
        store = MeasurementStore(app_paths(options.basedir).measurements_file)
    except LauncherError as error:
        note(error.sentence)
        return None
    if store.problem:
        note(store.problem)
    return store


@contextlib.contextmanager
def kept_store(options: argparse.Namespace) -> Iterator[MeasurementStore | None]:
    """The same, closed at the end."""
    store = open_store(options)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def this_machine(session: Session) -> Machine:
    """What measurements of this machine and build are known by."""
    devices = describe_devices(session.child)
    snapshot = read_machine(default_sources(lambda: devices))
    return machine_identity(devices, snapshot, describe_build(session.child).version)


def split_placement(session: Session) -> Placement | None:
    """What layer-splitting programs would choose; None, and a note, where there is none."""
    if why_not := no_layer_split(session.facts, session.machine, session.context):
        note(why_not)
    return layer_split(session.facts, session.machine, session.context)


class MeasurementKeeper:
    """Adds to a store that can be written; a refusal is said once, and ends it."""

    def __init__(self, store: MeasurementStore | None) -> None:
        self.store = None if store is None or store.read_only else store

    def keep(self, measurement: Measurement) -> None:
        """Store one, where that is possible."""
        if self.store is None:
            return
        try:
            self.store.add(measurement)
        except LauncherError as error:
            note(error.sentence)
            self.store = None


class KeptRepeats:
    """A ``BenchObserver`` that watches the machine and stores every repeat.

    Close it at the end. The watched process is this one: ``bench`` runs in it.
    """

    def __init__(
        self,
        session: Session,
        store: MeasurementStore | None,
        *,
        n_prompt: int,
        n_generate: int,
        split: Placement | None = None,
    ) -> None:
        """``split`` is the plain layer split among the cases."""
        self._facts: ModelFacts = session.facts
        self._keeper = MeasurementKeeper(store)
        self._n_prompt, self._n_generate = n_prompt, n_generate
        self._split = split
        #: Every repeat so far.
        self.measured: list[Measurement] = []
        self._fingerprint = model_fingerprint(session.facts)
        self._machine = this_machine(session)
        devices = describe_devices(session.child)
        watch = MachineWatch(default_sources(lambda: devices))
        self._watch: ConditionWatch = watch
        self.close = watch.close
        self._before: Conditions | None = None
        self._finish: Callable[[], Conditions] | None = None

    def begin(self) -> None:
        """See ``BenchObserver``."""
        if self._before is None:
            self._before = self._watch.baseline()
        self._finish = self._watch.begin(os.getpid())

    def end(
        self, case: BenchCase, report: LoadReport, stats: GenerationStats
    ) -> tuple[str, tuple[str, ...]]:
        """See ``BenchObserver``."""
        assert self._finish is not None and self._before is not None
        seen = self._finish()
        disturbed, remarks = disturbance(seen, self._before), condition_notes(seen)
        vram, ram = memory_taken(case, report)
        is_split = case.request.placement is self._split
        if is_split:
            n_layers = case.request.placement.n_gpu_layers
            remarks = (tr("Layer split: {n} layers on the GPU.").format(n=n_layers), *remarks)
        self._keep(
            Measurement(
                model=self._fingerprint,
                model_name=self._facts.name,
                setting=setting_of(case.request, LAYERS if is_split else EXPERTS),
                machine=self._machine,
                time_s=time.time(),
                n_prompt=self._n_prompt,
                n_generated=self._n_generate,
                depth=max(self._n_prompt, 1),
                prompt_tok_s=stats.prompt_tok_s if self._n_prompt else None,
                tok_s=stats.tok_s if self._n_generate else None,
                vram_bytes=vram,
                ram_bytes=ram,
                notes=(*report.mismatches, *remarks),
                disturbance=disturbed,
                source=BENCH,
                threads=report.n_threads,
                flash_attention=report.flash_attention,
                conditions=seen,
            )
        )
        return disturbed, remarks

    def _keep(self, measurement: Measurement) -> None:
        self.measured.append(measurement)
        self._keeper.keep(measurement)
