"""The machine that is planned for: its GPUs, what is free, and what they refuse of a model.

In: the devices of the installed llama.cpp build, the meters' words, the user's margins, what
past loads taught. Out: :attr:`PlannedMachine.now`, with a signal where it is noticeably another
one. GUI thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.default_gpus import allowed_devices
from moelauncher.core.memory.launch_plan import LaunchPlan, machine_of
from moelauncher.core.memory.margins import margins_from
from moelauncher.core.program import settings as keys
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_accounts import LoadAccounts
from moelauncher.gui.memory.refused_weights import RefusedWeightsDesk
from moelauncher.gui.services import Services

#: A change of free memory below this is no reason to draw a new forecast.
_NOTICEABLE_BYTES = 32 << 20


class PlannedMachine(QObject):
    """Keeps the machine up to date.

    Signals:
        changed(bool): :attr:`now` is another one; whether in more than what is free.
        weights_told: the GPUs have said which weights of a model they refuse.
    """

    changed = Signal(bool)
    weights_told = Signal()

    def __init__(
        self,
        window: MainWindow,
        services: Services,
        jobs: JobRunner,
        accounts: LoadAccounts,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        self._accounts = accounts
        self._devices: Sequence[BackendDevice] = ()
        self._snapshot: MachineSnapshot | None = None
        self._facts: ModelFacts | None = None
        self._refused = RefusedWeightsDesk(services, jobs, self)
        self._refused.learned.connect(self.look_again)
        self._refused.answered.connect(self.weights_told)
        self.now = Machine()
        accounts.learned.connect(self.look_again)
        window.memory.leave_free_changed.connect(self._leave_free_changed)

    # What comes in

    @property
    def devices(self) -> Sequence[BackendDevice]:
        """The devices that may be planned for."""
        return self._devices

    def set_devices(self, devices: Sequence[BackendDevice]) -> None:
        """The GPUs of the installed llama.cpp build are known (now), or the user's choice of
        them is another one."""
        chosen = self._services.settings.get(keys.GPU_DEVICES)
        allowed = allowed_devices(devices, chosen)
        if allowed != tuple(self._devices):
            self._devices = allowed
            self._accounts.set_devices(self._devices)
            self.look_again()

    def set_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word."""
        self._snapshot = snapshot
        self._accounts.on_snapshot(snapshot)
        self._window.memory.set_snapshot(snapshot)
        self.look_again()

    def set_margins(self, leave_free_bytes: Mapping[str, int]) -> None:
        """What is to stay free of each GPU; a device that is missing gets the usual margin."""
        margins = dict(leave_free_bytes)
        if margins != self._margins():
            self._services.state.set("leave_free_bytes", margins)
            self._look(anyway=True)

    def select(self, facts: ModelFacts | None) -> None:
        """Ask the GPUs what they refuse of this model."""
        self._facts = facts
        if facts is not None:
            self._ask()

    def look_again(self) -> None:
        """What was loaded or learned may leave another machine."""
        self._look(anyway=False)

    # What goes out

    def is_told(self, facts: ModelFacts, plan: LaunchPlan) -> bool:
        """Whether the plan's GPUs have said which of the model's weights they refuse."""
        return self._refused.is_told(facts, [gpu.name for gpu in plan.placement.devices])

    def as_told(self, machine: Machine) -> Machine:
        """``machine``, with all that GPUs have said of weights by now."""
        return replace(machine, refused_weights=dict(self._refused.known))

    # Inside

    def _look(self, *, anyway: bool) -> None:
        machine = self.as_told(
            machine_of(
                self._devices,
                self._snapshot,
                self._accounts.share(),
                self._margins(),
                self._services.settings.get(keys.LEAVE_FREE_BYTES),
                records=self._accounts.records,
                had_context=self._accounts.had_context,
            )
        )
        if not anyway and _alike(machine, self.now):
            return
        same_gpus = [gpu.name for gpu in machine.gpus] == [gpu.name for gpu in self.now.gpus]
        self.now = machine
        if not same_gpus:
            self._ask()
        self.changed.emit(anyway or not same_gpus)

    def _ask(self) -> None:
        self._refused.ask(self._facts, [gpu.name for gpu in self.now.gpus])

    def _leave_free_changed(self, device: str, n_bytes: int) -> None:
        self._services.state.set("leave_free_bytes", {**self._margins(), device: int(n_bytes)})
        self._look(anyway=True)

    def _margins(self) -> Mapping[str, int]:
        return margins_from(self._services.state.get("leave_free_bytes"))


def _alike(one: Machine, other: Machine) -> bool:
    """Whether a forecast on both reads the same."""
    if [gpu.name for gpu in one.gpus] != [gpu.name for gpu in other.gpus]:
        return False
    if (one.margins, one.refused_weights) != (other.margins, other.refused_weights):
        return False
    pairs = [(one.ram_free_bytes, other.ram_free_bytes)]
    pairs += [(a.free_bytes, b.free_bytes) for a, b in zip(one.gpus, other.gpus, strict=True)]
    return all(
        a == b or (a is not None and b is not None and abs(a - b) < _NOTICEABLE_BYTES)
        for a, b in pairs
    )
