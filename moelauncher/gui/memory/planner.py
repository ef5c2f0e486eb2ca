"""From the selected model and the placement pane to the plan, the gauge and the dry run.

Dragging the slider only forecasts, at once; when it rests, llama.cpp itself is asked in the
child process and the numbers become exact. GUI thread; the asking is a pool job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import BackendDevice, MachineSnapshot
from moelauncher.core.memory.auto_placement import Machine, corrected
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.default_gpus import allowed_devices
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.launch_plan import (
    IMAGINED_GPU,
    LaunchChoices,
    LaunchPlan,
    auto_choices,
    launch_plan,
    machine_of,
)
from moelauncher.core.memory.slider import expert_slider
from moelauncher.core.program import settings as keys
from moelauncher.core.units import format_tokens
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.dry_run_desk import DryRunDesk
from moelauncher.gui.memory.load_accounts import LoadAccounts
from moelauncher.gui.memory.plan_advice import Advice, advise, untold
from moelauncher.gui.memory.refused_weights import RefusedWeightsDesk
from moelauncher.gui.memory.remembered_choices import RememberedChoices
from moelauncher.gui.services import Services

#: The slider rests when it has not moved for this long.
REST_MS = 150
#: A change of free memory below this is no reason to draw a new forecast.
_NOTICEABLE_BYTES = 32 << 20


class Planner(QObject):
    """Keeps the plan of the selected model up to date and shown.

    Signals:
        plan_changed: the plan, or what it says, is another one.
        machine_changed: there is another amount of free memory, or another device.
        refused: LauncherError; llama.cpp does not take the selected file as it is set.
        weights_told: the GPUs have said which weights of a model they refuse.
    """

    plan_changed = Signal()
    machine_changed = Signal()
    refused = Signal(object)
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
        self._accounts = accounts
        self._window = window
        self._pane = window.placement
        self._services = services
        self._jobs = jobs
        self._devices: Sequence[BackendDevice] = ()
        self._snapshot: MachineSnapshot | None = None
        self._machine = Machine()
        self._choices = RememberedChoices(services.state, services.settings)
        self._auto = False
        self._new = False
        self._tried: set[LaunchChoices] = set()  # what Auto has chosen since it was asked
        self._advice: Advice | None = None
        self._dry_runs = DryRunDesk(services, jobs, self)
        self._dry_runs.answered.connect(self._answered)
        self._dry_runs.refused.connect(self.refused)
        self.facts: ModelFacts | None = None
        self.plan: LaunchPlan | None = None
        self._refused = RefusedWeightsDesk(services, jobs, self)
        self._refused.learned.connect(self._machine_changed)
        self._refused.answered.connect(self.weights_told)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._rested)
        self._pane.stop_changed.connect(self._moved)
        self._pane.gpu_layers_changed.connect(self._moved)
        self._pane.options_changed.connect(self._options_changed)
        self._pane.auto_requested.connect(self.auto)
        window.memory.leave_free_changed.connect(self._leave_free_changed)
        accounts.learned.connect(self._machine_changed)

    # What comes in

    def select(self, facts: ModelFacts | None, why_not: str = "") -> None:
        """Plan for another model: with its remembered choices, or Auto the first time.

        Without ``facts`` there is no plan; ``why_not`` says so where a row is selected.
        """
        self._dry_runs.cancel()
        self._jobs.cancel("advice")
        self.save()
        self.facts = facts
        self._advice = None
        if facts is None:
            self.plan = None
            why_not = why_not or self.tr("Select a model to place its layers.")
            self._pane.set_slider(0, 0, "", False, why_not)
            self._pane.set_gpu_layers(None)
            self._pane.set_layers(None, None)
            self._pane.set_context_hint("")
            self._window.memory.set_forecast(None)
            self.plan_changed.emit()
            return
        self._refused.ask(facts, [gpu.name for gpu in self._machine.gpus])
        remembered = self._choices.of(facts)
        self._new = remembered is None
        self._auto = remembered is None or remembered.get("auto") is True
        values = self._choices.values(remembered or {}, facts)
        slider = expert_slider(facts, self._machine.gpus or (IMAGINED_GPU,))
        self._pane.set_layers(facts, None)
        if slider.dense:
            self._pane.set_gpu_layers(slider.gpu_layers, 0)
        else:
            self._pane.set_gpu_layers(None)
        self._pane.set_slider(slider.last, values.stop, "", not slider.disabled_reason)
        self._pane.set_values(values)
        if self._auto:
            self._take_auto()
        self._replan()

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
            self._machine_changed()

    def set_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word."""
        self._snapshot = snapshot
        self._accounts.on_snapshot(snapshot)
        self._window.memory.set_snapshot(snapshot)
        self._machine_changed()

    def unloaded(self) -> None:
        """Nothing of ours is loaded any more."""
        self._machine_changed()

    def set_margins(self, leave_free_bytes: Mapping[str, int]) -> None:
        """What is to stay free of each GPU; a device that is missing gets the usual margin."""
        margins = dict(leave_free_bytes)
        if margins != self._margins():
            self._services.state.set("leave_free_bytes", margins)
            self._machine_changed(anyway=True)

    def auto(self) -> None:
        """Place for the user: as many layers on the GPU as fit."""
        if self.facts is None:
            return
        self._auto = True
        self._take_auto()
        self._replan()

    def take_tuned(self, choices: LaunchChoices) -> None:
        """What was tuned outside this window, where nobody has chosen for this model here."""
        if self._new and self._auto:
            self._new = False
            self.take(choices)

    def take(self, choices: LaunchChoices) -> None:
        """Set the pane to these choices, as if the user had."""
        self._auto = False
        self._pane.set_values(
            replace(
                self._pane.values(),
                stop=choices.cpu_moe,
                n_gpu_layers=choices.n_gpu_layers,
                n_ctx=choices.context.n_ctx,
                kv_type=choices.context.kv_type,
                n_threads=choices.context.n_threads,
                n_ubatch=choices.context.n_ubatch,
                use_mmap=choices.use_mmap,
                which=choices.which,
            )
        )
        self._replan()

    # What goes out

    @property
    def machine(self) -> Machine:
        """What is planned for: the GPUs, and what is free."""
        return self._machine

    def choices(self) -> LaunchChoices:
        """What the pane is set to, as the core names it."""
        values = self._pane.values()
        return LaunchChoices(
            cpu_moe=values.stop,
            n_gpu_layers=values.n_gpu_layers,
            which=values.which,
            context=ContextSettings(
                n_ctx=values.n_ctx,
                kv_type=values.kv_type,
                n_ubatch=values.n_ubatch,
                n_threads=values.n_threads,
            ),
            use_mmap=values.use_mmap,
        )

    def is_told(self, facts: ModelFacts, plan: LaunchPlan) -> bool:
        """Whether the plan's GPUs have said which of the weights they refuse."""
        return self._refused.is_told(facts, [gpu.name for gpu in plan.placement.devices])

    def as_told(self, facts: ModelFacts, plan: LaunchPlan) -> LaunchPlan:
        """``plan``, with what its GPUs have said of the weights since it was made."""
        machine = replace(plan.machine, refused_weights=dict(self._refused.known))
        if machine == plan.machine:
            return plan
        return launch_plan(facts, plan.choices, machine, self._dry_runs.known(facts, plan))

    def save(self) -> None:
        """Remember the choices for this model."""
        if self.facts is not None and self.plan is not None:
            self._choices.note(self.facts, self._pane.values(), auto=self._auto)

    # Inside

    def _moved(self, _value: int) -> None:
        self._auto = False
        self._replan()

    def _options_changed(self) -> None:
        if self._auto and self.facts is not None:
            self._take_auto()
        self._replan()

    def _leave_free_changed(self, device: str, n_bytes: int) -> None:
        margins = dict(self._margins())
        margins[device] = int(n_bytes)
        self._services.state.set("leave_free_bytes", margins)
        self._machine_changed(anyway=True)

    def _margins(self) -> Mapping[str, int]:
        stored = self._services.state.get("leave_free_bytes")
        if not isinstance(stored, dict):
            return {}
        return {
            name: value
            for name, value in stored.items()
            if isinstance(name, str) and type(value) is int and value >= 0
        }

    def _machine_changed(self, anyway: bool = False) -> None:
        machine = machine_of(
            self._devices,
            self._snapshot,
            self._accounts.share(),
            self._margins(),
            self._services.settings.get(keys.LEAVE_FREE_BYTES),
            records=self._accounts.records,
            had_context=self._accounts.had_context,
        )
        machine = replace(machine, refused_weights=dict(self._refused.known))
        if not anyway and _alike(machine, self._machine):
            return
        same_gpus = [gpu.name for gpu in machine.gpus] == [gpu.name for gpu in self._machine.gpus]
        self._machine = machine
        if not same_gpus:
            self._refused.ask(self.facts, [gpu.name for gpu in machine.gpus])
        self.machine_changed.emit()
        if self.facts is None:
            return
        if self._auto and (anyway or not same_gpus or self._outgrown()):
            self._take_auto()
        self._replan()

    def _outgrown(self) -> bool:
        """Whether Auto's choice no longer fits, and there is no loaded model to disturb."""
        if self.facts is None or self._accounts.comparison is not None:
            return False
        plan = launch_plan(self.facts, self.choices(), self._machine)
        return not all(gpu.fits for gpu in plan.forecast.gpus)

    def _take_auto(self) -> None:
        assert self.facts is not None
        self._tried.clear()
        self._show_choices(auto_choices(self.facts, self.choices(), self._machine))

    def _show_choices(self, chosen: LaunchChoices) -> None:
        self._pane.set_values(
            replace(self._pane.values(), stop=chosen.cpu_moe, n_gpu_layers=chosen.n_gpu_layers)
        )

    def _replan(self) -> None:
        if self.facts is None:
            return
        self._advice = None
        self._draw()
        self._dry_runs.cancel()
        self._rest.start()

    def _draw(self) -> None:
        facts = self.facts
        assert facts is not None
        choices = self.choices()
        plan = launch_plan(facts, choices, self._machine)
        known = self._dry_runs.known(facts, plan)
        if known is not None:
            plan = launch_plan(facts, choices, self._machine, known)
        advice = self._advice
        if advice is not None and advice.text and advice.basis == untold(plan.forecast):
            plan = replace(plan, forecast=replace(plan.forecast, text=advice.text))
        self.plan = plan
        slider = plan.slider
        self._pane.set_slider(
            slider.last,
            choices.cpu_moe,
            plan.sentence,
            not slider.disabled_reason,
            slider.disabled_reason,
            advice.fits if advice else (),
        )
        if slider.dense:
            self._pane.set_gpu_layers(slider.gpu_layers, choices.n_gpu_layers or 0, plan.sentence)
        self._pane.set_layers(facts, plan.shown)
        self._pane.set_auto(self._auto)
        self._show_hint()
        self._window.memory.set_forecast(plan.forecast)
        self.plan_changed.emit()

    def _show_hint(self) -> None:
        assert self.plan is not None
        largest = self._advice.largest_ctx if self._advice else None
        n_ctx = self.plan.choices.context.n_ctx
        trained = self.facts.ctx_train if self.facts else None
        if trained is not None and n_ctx > trained:
            text = self.tr("The model was trained for {trained}: beyond that it may lose track.")
            self._pane.set_context_hint(text.format(trained=format_tokens(trained)), trained)
        elif largest is None or self.plan.imagined_gpu or largest == n_ctx:
            self._pane.set_context_hint("")
        else:
            text = self.tr("Largest context that fits: {n}").format(n=format_tokens(largest))
            self._pane.set_context_hint(text, largest)

    def _rested(self) -> None:
        plan, facts = self.plan, self.facts
        if plan is None or facts is None:
            return
        self._ask_advice()
        self._dry_runs.ask(facts, plan)

    def _ask_advice(self) -> None:
        plan, facts, machine = self.plan, self.facts, self._machine
        if plan is None or facts is None:
            return
        self._jobs.start(
            "advice",
            lambda report, cancelled: advise(facts, plan, machine),
            self._advised,
            _ignore,
        )

    def _advised(self, advice: object) -> None:
        assert isinstance(advice, Advice)
        self._advice = advice
        self._draw()

    def _answered(self, result: DryRunResult) -> None:
        self._draw()
        if result.problem or not self._refine_auto():
            self._ask_advice()

    def _refine_auto(self) -> bool:
        """Where Auto chose by the estimate, choose again by what llama.cpp said.

        Each stop is tried once, so that two neighbours cannot take turns for ever.
        """
        plan, facts = self.plan, self.facts
        if not self._auto or plan is None or facts is None or plan.imagined_gpu:
            return False
        choices = plan.choices
        self._tried.add(choices)
        machine = corrected(facts, plan.placement, choices.context, self._machine, plan.forecast)
        chosen = auto_choices(facts, choices, machine)
        fits = all(gpu.fits for gpu in plan.forecast.gpus)
        if chosen == choices or (chosen in self._tried and fits):
            return False
        self._show_choices(chosen)
        self._replan()
        return True


def _ignore(error: LauncherError) -> None:
    """Advice that cannot be given is not missed."""


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
