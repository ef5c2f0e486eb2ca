"""From the selected model and the placement pane to the plan, the gauge and the dry run.

Dragging the slider only forecasts, at once; when it rests, llama.cpp itself is asked in the
child process and the numbers become exact. GUI thread; the asking is a pool job.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.auto_placement import Machine, corrected
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.launch_plan import (
    IMAGINED_GPU,
    LaunchChoices,
    LaunchPlan,
    auto_choices,
    launch_plan,
)
from moelauncher.core.memory.slider import expert_slider
from moelauncher.core.units import format_tokens
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.dry_run_desk import DryRunDesk
from moelauncher.gui.memory.load_accounts import LoadAccounts
from moelauncher.gui.memory.plan_advice import Advice, advise, untold
from moelauncher.gui.memory.planned_machine import PlannedMachine
from moelauncher.gui.memory.remembered_choices import RememberedChoices
from moelauncher.gui.services import Services

#: The slider rests when it has not moved for this long.
REST_MS = 150


class Planner(QObject):
    """Keeps the plan of the selected model up to date and shown.

    Signals:
        plan_changed: the plan, or what it says, is another one.
        refused: LauncherError; llama.cpp does not take the selected file as it is set.
    """

    plan_changed = Signal()
    refused = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        services: Services,
        jobs: JobRunner,
        machine: PlannedMachine,
        accounts: LoadAccounts,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._accounts = accounts
        self._window = window
        self._pane = window.placement
        self._jobs = jobs
        self._machine = machine
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
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(self._rested)
        self._pane.stop_changed.connect(self._moved)
        self._pane.gpu_layers_changed.connect(self._moved)
        self._pane.options_changed.connect(self._options_changed)
        self._pane.auto_requested.connect(self.auto)
        machine.changed.connect(self._machine_changed)

    # What comes in

    def select(self, facts: ModelFacts | None, why_not: str = "") -> None:
        """Plan for another model: with its remembered choices, or Auto the first time.

        Without ``facts`` there is no plan; ``why_not`` says so where a row is selected.
        """
        self._dry_runs.cancel()
        self._jobs.cancel("advice")
        self.save()
        self.facts = facts
        self._machine.select(facts)
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
        remembered = self._choices.of(facts)
        self._new = remembered is None
        self._auto = remembered is None or remembered.get("auto") is True
        values = self._choices.values(remembered or {}, facts)
        slider = expert_slider(facts, self.machine.gpus or (IMAGINED_GPU,))
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

    def unloaded(self) -> None:
        """Nothing of ours is loaded any more."""
        self._machine.look_again()

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
        return self._machine.now

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
        return self._machine.is_told(facts, plan)

    def as_told(self, facts: ModelFacts, plan: LaunchPlan) -> LaunchPlan:
        """``plan``, with what its GPUs have said of the weights since it was made."""
        machine = self._machine.as_told(plan.machine)
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

    def _machine_changed(self, anew: bool) -> None:
        if self.facts is None:
            return
        if self._auto and (anew or self._outgrown()):
            self._take_auto()
        self._replan()

    def _outgrown(self) -> bool:
        """Whether Auto's choice no longer fits, and there is no loaded model to disturb."""
        if self.facts is None or self._accounts.comparison is not None:
            return False
        plan = launch_plan(self.facts, self.choices(), self.machine)
        return not all(gpu.fits for gpu in plan.forecast.gpus)

    def _take_auto(self) -> None:
        assert self.facts is not None
        self._tried.clear()
        self._show_choices(auto_choices(self.facts, self.choices(), self.machine))

    def _show_choices(self, chosen: LaunchChoices) -> None:
        self._pane.set_values(
            replace(self._pane.values(), stop=chosen.cpu_moe, n_gpu_layers=chosen.n_gpu_layers)
        )

    def _replan(self) -> None:
        if self.facts is None:
            return
        self._advice = None
        self._draw()
        assert self.plan is not None
        self._dry_runs.keep_only(self.facts, self.plan)
        self._rest.start()

    def _draw(self) -> None:
        facts = self.facts
        assert facts is not None
        choices = self.choices()
        plan = launch_plan(facts, choices, self.machine)
        known = self._dry_runs.known(facts, plan)
        if known is not None:
            plan = launch_plan(facts, choices, self.machine, known)
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
        plan, facts, machine = self.plan, self.facts, self.machine
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
        machine = corrected(facts, plan.placement, choices.context, self.machine, plan.forecast)
        chosen = auto_choices(facts, choices, machine)
        fits = all(gpu.fits for gpu in plan.forecast.gpus)
        if chosen == choices or (chosen in self._tried and fits):
            return False
        self._show_choices(chosen)
        self._replan()
        return True


def _ignore(error: LauncherError) -> None:
    """Advice that cannot be given is not missed."""
