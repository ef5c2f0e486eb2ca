"""llama.cpp is asked in the child what a plan takes, and what it said is kept.

In: a model and a plan, when the slider rests. Out: the answer, once; later plans with the same
layers in the same places have it at once. GUI thread; the asking is a pool job.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.forecast import DryRunResult
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.services import Services

_LANE = "dry-run"
_KEPT = 128


class DryRunDesk(QObject):
    """Answers by model and placement.

    Signals:
        answered: a DryRunResult that was not known before; it may be a problem.
        refused: LauncherError; llama.cpp does not take the file as it was set. The problem is
            kept as an answer, and ``answered`` comes first.
    """

    answered = Signal(object)
    refused = Signal(object)

    def __init__(self, services: Services, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._jobs = jobs
        self._known: OrderedDict[object, DryRunResult] = OrderedDict()
        #: Shown, and asked again once another plan had an answer: the reason may be gone by then.
        self._passing: tuple[object, DryRunResult] | None = None
        self._open: object = None  # the key of the question that is open

    def known(self, facts: ModelFacts, plan: LaunchPlan) -> DryRunResult | None:
        """What was said of this model in this placement; None where nobody has asked."""
        key = _key(facts, plan)
        if key in self._known:
            return self._known[key]
        if self._passing is not None and self._passing[0] == key:
            return self._passing[1]
        return None

    def ask(self, facts: ModelFacts, plan: LaunchPlan) -> None:
        """Ask, unless it is known or asked; another question that is still open is dropped."""
        key = _key(facts, plan)
        asked = key == self._open and self._jobs.busy(_LANE)
        if asked or self.known(facts, plan) is not None:
            return
        self._open = key
        dry_run = self._services.dry_run

        def work(report: Report, cancelled: Callable[[], bool]) -> object:
            return dry_run(facts, plan.placement, plan.choices.context, cancelled)

        self._jobs.start(
            _LANE,
            work,
            lambda result: self._answered(key, result),
            lambda error: self._refused(key, error),
        )

    def keep_only(self, facts: ModelFacts, plan: LaunchPlan) -> None:
        """Drop the open question, unless it is of these layers in these places: memory that others
        take or free each second must not keep the answer from ever coming."""
        if self._open is not None and self._open != _key(facts, plan):
            self.cancel()

    def cancel(self) -> None:
        """Drop the open question."""
        self._open = None
        self._jobs.cancel(_LANE)

    def _answered(self, key: object, result: object) -> None:
        assert isinstance(result, DryRunResult)
        self._open = None
        if result.problem:
            self._passing = (key, result)
        else:
            self._keep(key, result)
        self.answered.emit(result)

    def _refused(self, key: object, error: LauncherError) -> None:
        self._open = None
        # The formula stays, marked, with the reason.
        result = DryRunResult(problem=error.message)
        self._keep(key, result)
        self.answered.emit(result)
        self.refused.emit(error)

    def _keep(self, key: object, result: DryRunResult) -> None:
        self._known[key] = result
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)


def _key(facts: ModelFacts, plan: LaunchPlan) -> object:
    # Free memory is no part of it: the same layers on the same devices take the same.
    placement = replace(
        plan.placement,
        devices=tuple(replace(gpu, free_bytes=None) for gpu in plan.placement.devices),
    )
    return (facts.path, facts.size_bytes, placement, plan.choices.context)
