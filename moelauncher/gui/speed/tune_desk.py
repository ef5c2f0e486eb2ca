"""Tuning in the window: the dialog, the sweep in the pool, and what is done with its end.

While a sweep runs the chat model is out of memory; it comes back afterwards, with the setting
that was taken where one was. GUI thread; the sweep runs in a pool thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from moelauncher.core.cpu_cores import logical_cores
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.layer_split import no_layer_split
from moelauncher.core.speed.lever_search import LeverSearch, TurnLengths
from moelauncher.core.speed.measurement import (
    Measurement,
    stop_speeds,
)
from moelauncher.core.speed.remarks import each_once
from moelauncher.core.speed.split_search import LAYER_SPLIT, SplitSearch, split_stop
from moelauncher.core.speed.sweep import SweepDecision
from moelauncher.core.speed.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneJob,
    Visiting,
    setting_of,
)
from moelauncher.core.speed.tune_plan import tune_plan
from moelauncher.core.speed.tune_text import decision_text
from moelauncher.core.units import format_bytes, format_duration, format_tokens
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.machine_loan import MachineLoan
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.services import Services
from moelauncher.gui.speed.known_speeds import KnownSpeeds
from moelauncher.gui.speed.outlook_desk import OutlookDesk
from moelauncher.gui.speed.tune_dialog import TuneDialog

_LANE = "tune"
_PROMPT_TOKENS, _GENERATED_TOKENS = 512, 128


class TuneDesk(QObject):
    """One window's tuning.

    Signals:
        compare_wanted(object, object): LaunchChoices of the present setting and of the best.
    """

    compare_wanted = Signal(object, object)

    def __init__(
        self,
        window: MainWindow,
        planner: Planner,
        services: Services,
        jobs: JobRunner,
        known: KnownSpeeds,
        outlook: OutlookDesk,
        loan: MachineLoan,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._planner = planner
        self._run = services.tune
        self._jobs = jobs
        self._known = known
        self._outlook = outlook
        self._loan = loan
        self._search: SplitSearch | None = None
        self._runs: dict[int, list[Measurement]] = {}
        self._decision: SweepDecision | None = None
        self._cancel_asked = False
        self._stop_title = ""
        self.dialog = TuneDialog(window)
        self.dialog.started.connect(self._start)
        self.dialog.cancelled.connect(self._cancel)
        self.dialog.taken.connect(self._take)
        self.dialog.compare_wanted.connect(self._compare)
        window.speed.tune_requested.connect(self.open)

    # What comes in

    def set_able(self, able: bool, why_not: str = "") -> None:
        """Whether a sweep can begin now."""
        self._window.speed.set_can_tune(able, why_not)
        self._outlook.set_able(able)

    def close(self) -> None:
        """End a sweep. The pool is closed by its owner."""
        self.dialog.set_running(False)
        self.dialog.close()
        self._jobs.cancel(_LANE)
        self._outlook.close()

    # The sweep

    def open(self) -> None:
        """Show the dialog for the selected model."""
        facts, plan = self._planner.facts, self._planner.plan
        if facts is None or plan is None:
            return
        choices = plan.choices
        n_prompt, n_generate = self._lengths(choices.context.n_ctx)
        dense = plan.slider.dense
        about = self.tr(
            "Measures {name} at a context of {n_ctx}: {prompt} tokens of real text are read and "
            "{tg} written at each stop that is visited, each in a process of its own. What is "
            "loaded is unloaded first and comes back afterwards. Leave the computer alone "
            "meanwhile."
        ).format(
            name=facts.name,
            n_ctx=format_tokens(choices.context.n_ctx),
            prompt=n_prompt,
            tg=n_generate,
        )
        self._stop_title = self.tr("On the GPU") if dense else self.tr("On the CPU")
        self.dialog.begin(about, self._stop_title)
        self.dialog.set_split(no_layer_split(facts, self._planner.machine, choices.context))
        self.dialog.open()

    def _lengths(self, n_ctx: int) -> tuple[int, int]:
        n_generate = max(1, min(_GENERATED_TOKENS, n_ctx // 4))
        return max(1, min(_PROMPT_TOKENS, n_ctx - n_generate - 1)), n_generate

    def _start(self, minutes: int) -> None:
        self._runs, self._decision = {}, None
        self._cancel_asked = False
        self._window.speed.setting_button.setChecked(True)
        self.dialog.set_running(True)
        self.dialog.set_verdict("", False)
        self.dialog.set_progress(self.tr("freeing the memory"), None)
        self._loan.take(lambda: self._begin(minutes))

    def _begin(self, minutes: int) -> None:
        facts = self._planner.facts
        if facts is None or self._cancel_asked:
            self.dialog.set_verdict(self._nothing_measured(), False)
            self._ended(None)
            return
        choices = self._planner.choices()
        plan = tune_plan(facts, self._planner.machine, choices)
        n_prompt, n_generate = self._lengths(choices.context.n_ctx)
        levers = LeverSearch(
            plan,
            plan.sweep(predicted=self._outlook.curve),
            self.dialog.levers(),
            TurnLengths(n_prompt, n_generate),
            logical_cores=logical_cores(),
        )
        split = split_stop(plan) if self.dialog.wants_split else None
        self._search = search = SplitSearch(levers, split)
        job = TuneJob(
            model=self._known.fingerprint(facts),
            model_name=facts.name,
            machine=self._known.machine(),
            n_prompt=n_prompt,
            n_generate=n_generate,
            budget_s=60.0 * minutes,
        )
        store, run = self._known.store, self._run

        def work(report: Callable[[object], None], cancelled: Callable[[], bool]) -> object:
            last: object = None
            for event in run(
                job,
                search,
                search.case,
                lambda: cancelled() or self._cancel_asked,
            ):
                if isinstance(event, Measured) and store is not None and not store.read_only:
                    try:
                        store.add(event.measurement)
                    except LauncherError as error:
                        report(error)
                report(event)
                last = event
            return last

        self._jobs.start(_LANE, work, self._ended, self._broke, self._reported)

    def _cancel(self) -> None:
        self._cancel_asked = True

    def _reported(self, event: object) -> None:
        if isinstance(event, Visiting):
            text = self.tr("{where}: {stop} · {time} left").format(
                where=self._stop_title,
                stop=self._name(event.stop),
                time=format_duration(event.left_s),
            )
            self.dialog.set_progress(text, event.n_done / event.n_most)
        elif isinstance(event, Measured):
            self._runs.setdefault(event.stop, []).append(event.measurement)
            self._show_row(event.stop)
        elif isinstance(event, Failed):
            cells = (self._name(event.stop), "–", "–", "", event.error.message)
            self.dialog.set_row(self._row(event.stop), cells)
        elif isinstance(event, LauncherError):
            self._window.status.set_message(event.sentence, "warning")

    def _show_row(self, stop: int) -> None:
        runs = self._runs[stop]
        found = stop_speeds([replace(one, disturbance="") for one in runs])
        counted = stop_speeds(runs) or found
        one = counted[0]
        # One repeat has no spread.
        spread = f" ± {one.mad:.2f}" if len(one.rates) > 1 else ""
        remarks = each_once(
            text for run in runs for text in dict.fromkeys((run.disturbance, *run.notes)) if text
        )
        if one.n_disturbed:
            remarks.insert(0, self.tr("{n} left out:").format(n=one.n_disturbed))
        prompt = "" if one.prompt_median is None else f"{one.prompt_median:.0f}"
        self.dialog.set_row(
            self._row(stop),
            (
                self._name(stop),
                f"{one.median:.2f}{spread}  ({len(one.rates)})",
                prompt,
                format_bytes(runs[-1].vram_bytes),
                " ".join(remarks),
            ),
        )

    def _label(self, number: int) -> int:
        """The stop of a setting, as the slider calls it."""
        assert self._search is not None
        placement = self._search.setting(number).placement
        return placement.cpu_moe if placement.of else placement.n_gpu_layers

    def _name(self, number: int) -> str:
        """A setting in the table: its stop, and the levers that differ from the user's."""
        assert self._search is not None
        difference = self._search.difference(number)
        if number == LAYER_SPLIT:
            n_layers = self._search.setting(number).placement.n_gpu_layers
            return self.tr("Layer split ({n} on the GPU)").format(n=n_layers)
        return ", ".join(filter(None, (str(self._label(number)), difference)))

    def _row(self, number: int) -> tuple[int, int]:
        """Where it stands in the table: by stops, those with other levers behind."""
        assert self._search is not None
        if number == LAYER_SPLIT:
            return len(self._search.plan.stops), 0
        levers = number if self._search.difference(number) else 0
        return self._label(number), levers

    def _broke(self, error: LauncherError) -> None:
        self._window.status.set_message(error.sentence, "error")
        self._ended(None)

    def _ended(self, last: object) -> None:
        self.dialog.set_running(False)
        self.dialog.set_progress("", None)
        self._known.read_again()
        if isinstance(last, Decided) and self._search is not None:
            plan = self._search.plan
            self._decision = last.decision
            best = last.decision.best
            spare = None if best is None else plan.stops[best].forecast.spare_bytes
            text = decision_text(
                last.decision,
                spare_bytes=spare,
                present=plan.present,
                one_place=plan.one_place,
                label=self._label,
            )
            if last.why == "budget":
                text += " " + self.tr("The time was used up: more may change the result.")
            elif last.why == "cancelled" and not self._runs:
                text = self._nothing_measured()
            elif last.why == "cancelled":
                text += " " + self.tr("Cancelled; what was measured is kept.")
            if split_text := self._search.split_text():
                text += " " + split_text
            if last.busy_note and self._runs:
                text += " " + last.busy_note
            can_take = last.decision.setting not in (None, plan.present)
            self.dialog.set_verdict(text, can_take)
        self._loan.give_back()

    def _nothing_measured(self) -> str:
        return self.tr("Cancelled before anything was measured.")

    def _take(self) -> None:
        search, decision = self._search, self._decision
        if search is None or decision is None or decision.setting is None:
            return
        self._planner.take(search.setting(decision.setting).choices)
        self._planner.save()
        if self._known.store is not None and not self._known.store.read_only:
            setting = setting_of(search.request(decision.setting))
            try:
                self._known.store.remember_choice(
                    self._known.fingerprint(search.plan.facts),
                    self._known.machine().name,
                    setting,
                    time.time(),
                )
            except LauncherError as error:
                self._window.status.set_message(error.sentence, "warning")
        self.dialog.close()
        self._loan.apply()

    def _compare(self) -> None:
        search, decision = self._search, self._decision
        if search is None or decision is None or decision.setting is None:
            return
        self.dialog.close()
        present = search.setting(search.plan.present).choices
        self.compare_wanted.emit(present, search.setting(decision.setting).choices)
