"""Keeps the accounts of what loads take: planned, allocated, measured, and remembered.

It holds the machine as it was before a load, so that our own share is known; compares each
load with its forecast, waits for the meters to see it, and stores what was learned; and
notices when VRAM spills into shared memory while a model is loaded. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from moelauncher.core.engine_protocol import LoadReport
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.memory.load_comparison import (
    LoadComparison,
    compare_load,
    measured_use,
    with_measured,
)
from moelauncher.core.memory.load_records import (
    LOADED,
    OUT_OF_MEMORY,
    SPILLED,
    LoadRecord,
    LoadRecords,
    device_key,
)
from moelauncher.core.memory.memory_shortage import MemoryShortage
from moelauncher.core.memory.own_share import OwnShare, own_share
from moelauncher.core.memory.spill import find_spills, main_memory_bytes

#: Readings that were begun before the load ended may still come.
_SETTLED_S = 0.5


@dataclass(frozen=True)
class _Open:
    """A load whose last word from the meters is awaited."""

    facts: ModelFacts
    plan: LaunchPlan
    report: LoadReport
    comparison: LoadComparison
    ended_s: float


class LoadAccounts(QObject):
    """The accounts of one window.

    Signals:
        compared: LoadComparison; at the end of a load, and again once the meters saw it.
        learned: records were added, so a plan may look different now.
        spilled: Spill; VRAM of a loaded model moved into shared memory, said once a load.
    """

    compared = Signal(object)
    learned = Signal()
    spilled = Signal(object)

    def __init__(
        self,
        records: LoadRecords,
        parent: QObject | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` must be that of the snapshots."""
        super().__init__(parent)
        self._records = records
        self._clock = clock
        self._wall_clock = wall_clock
        self._keys: dict[str, str] = {}
        self._snapshot: MachineSnapshot | None = None
        self._before: MachineSnapshot | None = None
        self._contexts: frozenset[str] = frozenset()
        self._contexts_before: frozenset[str] = frozenset()
        self._earlier: tuple[MachineSnapshot, frozenset[str]] | None = None
        self._gone_s = float("-inf")
        self._touched_s = float("-inf")
        self._open: _Open | None = None
        self._loaded: _Open | None = None
        self._said: set[str] = set()

    # What a plan needs to know

    @property
    def records(self) -> Sequence[LoadRecord]:
        """Past loads, oldest first."""
        return self._records.records

    @property
    def comparison(self) -> LoadComparison | None:
        """Of what is loaded now."""
        return self._loaded.comparison if self._loaded is not None else None

    @property
    def had_context(self) -> Collection[str]:
        """Devices whose driver had taken its share before what :meth:`share` gives back."""
        if self._before is not None or not self._is_newer(self._touched_s):
            return self._contexts_before
        return self._contexts

    def share(self) -> OwnShare:
        """What an unload would give back."""
        if self._snapshot is None or self._before is None:
            return OwnShare()
        report = self._loaded.report if self._loaded is not None else None
        held = main_memory_bytes(report) if report is not None else 0
        return own_share(self._before, self._snapshot, held)

    # What happens

    def set_devices(self, devices: Sequence[BackendDevice]) -> None:
        """The devices of the build, by which loads are remembered."""
        self._keys = {
            device.name: device_key(device.name, device.description)
            for device in devices
            if device.kind != "cpu"
        }

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word."""
        self._snapshot = snapshot
        waiting = self._open
        if waiting is not None and snapshot.time_s > waiting.ended_s + _SETTLED_S:
            self._open = None
            self._measured(waiting, snapshot)
        if self._loaded is not None and self._before is not None:
            self._look_for_spills(self._loaded, self._before, snapshot)

    def begins(self) -> None:
        """A load begins: from now on what is used more than before is our own."""
        if self._before is not None:
            return
        if self._earlier is None or self._is_newer(self._gone_s):
            contexts = self.had_context
            self._before, self._contexts_before = self._snapshot, frozenset(contexts)
        else:
            # The meters still see the model that went a moment ago.
            self._before, self._contexts_before = self._earlier

    def ended(
        self,
        facts: ModelFacts,
        plan: LaunchPlan,
        report: LoadReport,
        *,
        weights_told: bool = True,
    ) -> LoadComparison:
        """The model is there. The meters' part of the comparison follows with a snapshot.

        ``weights_told``: see ``compare_load``; where not, :meth:`told` may follow.
        """
        comparison = self._compare(plan, report, weights_told)
        self._touched(plan)
        self._said.clear()
        self._open = _Open(facts, plan, report, comparison, self._clock())
        self._loaded = self._open
        self.compared.emit(comparison)
        return comparison

    def told(self, plan: LaunchPlan) -> LoadComparison | None:
        """``plan`` is what is loaded, as it reads now that the GPUs have spoken of its weights."""
        loaded = self._loaded
        if loaded is None:
            return None
        measured = {
            device.device: device.measured_bytes
            for device in loaded.comparison.devices
            if device.measured_bytes is not None
        }
        comparison = with_measured(self._compare(plan, loaded.report, True), measured)
        self._loaded = replace(loaded, plan=plan, comparison=comparison)
        if self._open is loaded:
            self._open = self._loaded
        self.compared.emit(comparison)
        return comparison

    def failed(self, facts: ModelFacts, plan: LaunchPlan, shortage: MemoryShortage | None) -> None:
        """The load ended without a model; a shortage is remembered for the margin."""
        self._touched(plan)
        if shortage is None:
            return
        for device in plan.forecast.gpus:
            if device.name == shortage.device and device.name in self._keys:
                self._remember([self._record(facts, plan, device.name, outcome=OUT_OF_MEMORY)])

    def gone(self) -> None:
        """Nothing of ours is loaded any more."""
        if self._before is not None:
            self._earlier = (self._before, self._contexts_before)
            self._gone_s = self._clock()
        self._before = None
        self._open = None
        self._loaded = None
        self._said.clear()

    # Inside

    def _compare(self, plan: LaunchPlan, report: LoadReport, weights_told: bool) -> LoadComparison:
        return compare_load(
            plan.forecast,
            report,
            use_mmap=plan.choices.use_mmap,
            had_context=self._contexts_before,
            weights_told=weights_told,
        )

    def _touched(self, plan: LaunchPlan) -> None:
        """This process has a context now: a driver keeps its share until the process ends."""
        if plan.placement.devices:
            # Asking the drivers for their devices is enough for a context on each of them.
            self._contexts = frozenset(self._keys) | {gpu.name for gpu in plan.placement.devices}
            self._touched_s = self._clock()

    def _is_newer(self, moment_s: float) -> bool:
        """Whether the meters have spoken since."""
        return self._snapshot is not None and self._snapshot.time_s > moment_s + _SETTLED_S

    def _measured(self, waiting: _Open, snapshot: MachineSnapshot) -> None:
        if self._before is not None:
            measured = measured_use(self._before, snapshot)
            comparison = with_measured(waiting.comparison, measured)
            if self._loaded is waiting:
                self._loaded = replace(waiting, comparison=comparison)
            waiting = replace(waiting, comparison=comparison)
            self.compared.emit(comparison)
        self._remember(
            [
                replace(
                    self._record(waiting.facts, waiting.plan, device.device, outcome=LOADED),
                    buffer_bytes=device.buffer_bytes,
                    measured_bytes=device.measured_bytes,
                    had_context=device.had_context,
                )
                for device in waiting.comparison.devices
                if device.device in self._keys
            ]
        )

    def _look_for_spills(
        self, loaded: _Open, before: MachineSnapshot, snapshot: MachineSnapshot
    ) -> None:
        for spill in find_spills(before, snapshot, loaded.report):
            if spill.device in self._said:
                continue
            self._said.add(spill.device)
            if spill.device in self._keys:
                record = self._record(loaded.facts, loaded.plan, spill.device, outcome=SPILLED)
                self._remember([replace(record, spilled_bytes=spill.n_bytes)])
            self.spilled.emit(spill)

    def _record(
        self, facts: ModelFacts, plan: LaunchPlan, device: str, *, outcome: str
    ) -> LoadRecord:
        planned = plan.forecast.device(device)
        return LoadRecord(
            time_s=self._wall_clock(),
            device=self._keys[device],
            outcome=outcome,
            model=facts.name,
            planned_bytes=planned.used_bytes,
            driver_bytes=planned.driver_bytes,
            leave_free_bytes=planned.leave_free_bytes,
            spare_bytes=planned.spare_bytes,
        )

    def _remember(self, records: Sequence[LoadRecord]) -> None:
        if records:
            self._records.add(records)
            self.learned.emit()
