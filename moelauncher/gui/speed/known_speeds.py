"""What is measured of the selected model on this machine: the open store, and who is told of it.

In: the planner's model, the machine. Out: the speeds by setting, the best one for the model's
row, all measurements for whoever shares them. GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.program.machine_identity import machine_identity
from moelauncher.core.speed.best_setting import BestSetting
from moelauncher.core.speed.measurement import Machine, StopSpeed, model_fingerprint, speeds_by_stop
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.speed.tune_events import choices_of
from moelauncher.core.units import format_rate
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.services import Services
from moelauncher.gui.speed.outlook_desk import OutlookDesk


class KnownSpeeds(QObject):
    """One window's measurements.

    Signals:
        best_known(object, object): a model's path, and its BestSetting on this machine (None:
            nothing is measured); as soon as it is known, and when it changes.
        measurements_known(object, list): the selected model's facts, and all that is stored
            of it, from any machine; None without a model.
    """

    best_known = Signal(object, object)
    measurements_known = Signal(object, list)

    def __init__(
        self,
        window: MainWindow,
        planner: Planner,
        services: Services,
        outlook: OutlookDesk,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._planner = planner
        self._services = services
        self._outlook = outlook
        self._devices: Sequence[BackendDevice] = ()
        self._version = ""
        self._snapshot: MachineSnapshot | None = None
        self._store: MeasurementStore | None = None
        self._opened = False
        self._speeds_of: tuple[object, ...] | None = None
        self._speeds: tuple[StopSpeed, ...] = ()
        self._offered_of: tuple[object, ...] | None = None
        self._fingerprints: dict[int, str] = {}
        planner.plan_changed.connect(self.show_speeds)
        outlook.hardware_known.connect(self.show_speeds)

    # What comes in

    def set_devices(self, devices: Sequence[BackendDevice]) -> None:
        """The devices of the installed build."""
        self._devices = tuple(devices)
        self.show_speeds()

    def set_build(self, version: str) -> None:
        """The version of llama-cpp-python."""
        self._version = version

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word; the first one names the machine."""
        first = self._snapshot is None
        self._snapshot = snapshot
        if self.store is not None and self.store.changed_elsewhere():
            # The command line has measured something, or another window has.
            self.read_again()
        elif first:
            self.show_speeds()

    def close_store(self) -> None:
        """Once nothing runs any more."""
        self._opened = True
        if self._store is not None:
            self._store.close()

    # What goes out

    def show_speeds(self) -> None:
        """What is known of the selected model on this machine."""
        facts, plan = self._planner.facts, self._planner.plan
        if facts is None or plan is None:
            self._outlook.show(None, None, ())
            self.measurements_known.emit(None, [])
            return
        dense = plan.slider.dense
        self._outlook.show(facts, plan, self._speeds_for(facts, dense))
        if self._speeds_of is not None and self._offered_of != self._speeds_of:
            self._offered_of = self._speeds_of
            self._offer_tuned(facts, dense)

    @property
    def store(self) -> MeasurementStore | None:
        """The open store; None where it cannot be opened.

        It is opened when it is first looked for, so that the first paint need not wait for it.
        """
        if not self._opened:
            self._opened = True
            self._store = self._open_store()
        return self._store

    def read_again(self) -> None:
        """Something was stored or removed."""
        self._speeds_of = None
        self.show_speeds()

    def best_text(self, facts: ModelFacts) -> str:
        """The fastest setting of a model that was measured here, as a line; "" where none was."""
        dense = not facts.expert_layers
        speeds = self._speeds_for(facts, dense)
        if not speeds:
            return ""
        best = max(speeds, key=lambda one: one.median)
        text = (
            self.tr("{rate} measured, with {n} layers on the GPU")
            if dense
            else self.tr("{rate} measured, with {n} expert layers on the CPU")
        )
        return text.format(rate=format_rate(best.median), n=best.stop)

    def _tell_best(self, facts: ModelFacts, dense: bool) -> None:
        best = max(self._speeds, key=lambda one: one.median, default=None)
        setting = None
        if best is not None:
            of = facts.n_layer_all + 1 if dense else len(facts.expert_layers)
            away = of - best.stop if dense else best.stop
            has_gpu = bool(self._planner.machine.gpus)
            setting = BestSetting(best.median, away, of if has_gpu else 0, tuned=True)
        self.best_known.emit(facts.path, setting)

    def _speeds_for(self, facts: ModelFacts, dense: bool) -> tuple[StopSpeed, ...]:
        if self._snapshot is None or not self._devices or self.store is None:
            return ()
        machine = self.machine().name
        self._outlook.set_machine(machine)
        key = (id(facts), machine)
        if self._speeds_of != key:
            self._speeds_of = key
            try:
                found = self.store.of_model(self.fingerprint(facts))
            except LauncherError as error:
                self._window.status.set_message(error.sentence, "warning")
                found = []
            here = [one for one in found if one.machine.name == machine]
            self._speeds = speeds_by_stop(here, dense=dense)
            self.measurements_known.emit(facts, found)
            self._tell_best(facts, dense)
        return self._speeds

    def _offer_tuned(self, facts: ModelFacts, dense: bool) -> None:
        """A setting that Tune found at the command line, or in a window of other folders."""
        if self.store is None:
            return
        setting = self.store.choice(self.fingerprint(facts), self.machine().name)
        if setting is not None:
            self._planner.take_tuned(choices_of(setting, dense=dense))

    def fingerprint(self, facts: ModelFacts) -> str:
        """What a model's measurements are known by."""
        key = id(facts)
        if key not in self._fingerprints:
            self._fingerprints = {key: model_fingerprint(facts)}
        return self._fingerprints[key]

    # Inside

    def machine(self) -> Machine:
        """What measurements of this machine are known by."""
        return machine_identity(self._devices, self._snapshot, self._version)

    def _open_store(self) -> MeasurementStore | None:
        try:
            store = MeasurementStore(self._services.paths.measurements_file)
        except LauncherError as error:
            self._window.status.set_message(error.sentence, "warning")
            return None
        if store.problem:
            self._window.status.set_message(store.problem, "warning")
        return store
