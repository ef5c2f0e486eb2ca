"""What the GPUs refuse of the models that were selected, asked of llama.cpp once a model.

In: the selected model, the GPUs. Out: :attr:`RefusedWeightsDesk.known`, with a signal when it
grows. GUI thread; the asking is a pool job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.weight_probes import RefusedWeights, WeightProbe
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.services import Services

_LANE = "refused-weights"


class RefusedWeightsDesk(QObject):
    """Keeps what is known.

    Signals:
        learned: :attr:`known` has more in it.
        answered: the GPUs have spoken of a model, whatever they said.
    """

    learned = Signal()
    answered = Signal()

    def __init__(self, services: Services, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._jobs = jobs
        self.known: dict[str, frozenset[WeightProbe]] = {}
        self._told: set[tuple[Path, str]] = set()

    def is_told(self, facts: ModelFacts, gpus: Iterable[str]) -> bool:
        """Whether each of these GPUs has answered for this model."""
        return all((facts.path, gpu) in self._told for gpu in gpus)

    def ask(self, facts: ModelFacts | None, gpus: Sequence[str]) -> None:
        """Find out for this model on these GPUs; nothing where there is none of either."""
        self._jobs.cancel(_LANE)
        if facts is None or not gpus:
            return
        asked, names = self._services.refused_weights, tuple(gpus)

        def job(report: Report, cancelled: object) -> object:
            return asked(facts, names)

        def done(answer: object) -> None:
            self._told.update((facts.path, name) for name in names)
            self._answered(answer)

        self._jobs.start(_LANE, job, done, _stays_unknown)

    def _answered(self, answer: object) -> None:
        assert isinstance(answer, dict)
        refused: RefusedWeights = answer
        before = dict(self.known)
        for device, probes in refused.items():
            self.known[device] = self.known.get(device, frozenset()) | frozenset(probes)
        if self.known != before:
            self.learned.emit()
        self.answered.emit()


def _stays_unknown(_error: LauncherError) -> None:
    """The dry run says what is wrong with llama.cpp."""
