"""Comparing answers in the window: what is compared, the check in the pool, what it found.

While a check runs the chat model is out of memory; it comes back afterwards. GUI thread; the
check runs in a pool thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.launch_plan import LaunchChoices
from moelauncher.core.memory.placement import expert_stops
from moelauncher.core.speed.answers_plan import AnswerChoices, answers_job, choices_text
from moelauncher.core.speed.same_answers import (
    AnswersJob,
    AnswersProgress,
    SameAnswers,
    only_order_differs,
    verdict,
)
from moelauncher.gui.chats.answers_dialog import AnswersDialog
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.machine_loan import MachineLoan
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.services import Services

_LANE = "answers"


class AnswersDesk(QObject):
    """One window's checks."""

    def __init__(
        self,
        window: MainWindow,
        planner: Planner,
        services: Services,
        jobs: JobRunner,
        loan: MachineLoan,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._planner = planner
        self._services = services
        self._jobs = jobs
        self._loan = loan
        self._reference: AnswerChoices | None = None
        self._change: LaunchChoices | None = None
        self._titles = ("", "")
        self._order_only = False
        self._cancel_asked = False
        self.dialog = AnswersDialog(window)
        self.dialog.started.connect(self._start)
        self.dialog.cancelled.connect(self._cancel)
        window.chats.compare_requested.connect(self.open)

    def close(self) -> None:
        """End a check. The pool is closed by its owner."""
        self.dialog.set_running(False)
        self.dialog.close()
        self._jobs.cancel(_LANE)

    def open(self) -> None:
        """Offer to hold the setting in view against another KV type."""
        if self._planner.facts is None:
            return
        choices = self._planner.choices()
        context = choices.context
        kv_type = "q8_0" if context.kv_type == "f16" else "f16"
        self.offer(choices, replace(choices, context=replace(context, kv_type=kv_type)))

    def offer(self, reference: LaunchChoices, change: LaunchChoices) -> None:
        """Offer to hold ``change`` against ``reference``."""
        facts = self._planner.facts
        if facts is None:
            return
        self._reference, self._change = AnswerChoices(reference), change
        last = len(expert_stops(facts))
        movable = bool(self._planner.machine.gpus) and last > 0
        self.dialog.begin(
            self._text(facts, self._reference),
            change.context.kv_type,
            None,
            (change.cpu_moe, last) if movable else None,
        )
        self.dialog.open()

    def _text(self, facts: ModelFacts, choices: AnswerChoices) -> str:
        return choices_text(choices, facts, has_gpu=bool(self._planner.machine.gpus))

    # The check

    def _start(self) -> None:
        self.dialog.set_result(None, None, "", "")
        self.dialog.set_running(True)
        self.dialog.set_progress(self.tr("freeing the memory"), None)
        self._cancel_asked = False
        self._loan.take(self._begin)

    def _begin(self) -> None:
        facts, reference, launch = self._planner.facts, self._reference, self._change
        if facts is None or reference is None or launch is None:
            self._ended(None)
            return
        kv_type, flash, layers = self.dialog.chosen
        if not self.dialog.layers.isHidden():
            launch = replace(launch, cpu_moe=layers)
        launch = replace(launch, context=replace(launch.context, kv_type=kv_type))
        change = AnswerChoices(launch, flash)
        self._titles = (self._text(facts, reference), self._text(facts, change))
        job: AnswersJob = answers_job(facts, self._planner.machine, reference, change)
        self._order_only = only_order_differs(job.reference, job.change)
        run = self._services.answers

        def work(report: Callable[[object], None], cancelled: Callable[[], bool]) -> object:
            try:
                for event in run(job, lambda: cancelled() or self._cancel_asked):
                    if isinstance(event, SameAnswers):
                        return event
                    report(event)
            except Cancelled:
                pass  # the dialog has to hear of it
            return None

        self._jobs.start(_LANE, work, self._ended, self._broke, self._reported)

    def _cancel(self) -> None:
        self._cancel_asked = True

    def _reported(self, event: object) -> None:
        if isinstance(event, AnswersProgress):
            text = {
                "reference": self.tr("asking under the first setting"),
                "noise": self.tr("measuring what another placement alone changes"),
                "change": self.tr("asking under the other setting"),
            }[event.step]
            self.dialog.set_progress(text, event.fraction)

    def _broke(self, error: LauncherError) -> None:
        self._ended(None)
        self.dialog.set_problem(error.sentence)

    def _ended(self, found: object) -> None:
        self.dialog.set_running(False)
        self.dialog.set_progress("", None)
        if isinstance(found, SameAnswers):
            told = verdict(found, order_only=self._order_only)
            self.dialog.set_result(found, told, *self._titles)
        self._loan.give_back()
