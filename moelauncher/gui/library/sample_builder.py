"""Builds the sample model where the list's pane asks for it, and shows there how far it is.

GUI thread; the building is a pool job.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog import entry_of
from moelauncher.core.library.sample_model import build_sample_model
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.library.model_list_pane import ModelListPane

_LANE = "sample"


class SampleBuilder(QObject):
    """One sample, built at most once at a time.

    Signals:
        built(object): its CatalogEntry; also where it was there already.
        message(str, str): text and level for the status line.
    """

    built = Signal(object)
    message = Signal(str, str)

    def __init__(
        self, pane: ModelListPane, folder: Path, jobs: JobRunner, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._pane = pane
        self._folder = folder
        self._jobs = jobs
        pane.demo_requested.connect(self.build)
        pane.demo_cancel_requested.connect(self.cancel)

    def build(self) -> None:
        """Build it where it is missing."""
        folder = self._folder
        self._jobs.start(
            _LANE,
            lambda report, cancelled: entry_of(
                build_sample_model(folder, progress=_every_percent(report), cancelled=cancelled)
            ),
            self._done,
            self._failed,
            self._progressed,
        )

    def cancel(self) -> None:
        """Stop building; what was written is removed."""
        self._jobs.cancel(_LANE)
        self._pane.set_demo_progress(None)

    def _done(self, entry: object) -> None:
        self._pane.set_demo_progress(None)
        self.built.emit(entry)

    def _failed(self, error: LauncherError) -> None:
        self._pane.set_demo_progress(None)
        self.message.emit(error.sentence, "error")

    def _progressed(self, fraction: object) -> None:
        assert isinstance(fraction, float)
        self._pane.set_demo_progress(fraction)


def _every_percent(report: Report) -> Callable[[float], None]:
    told = -1.0

    def progress(fraction: float) -> None:
        nonlocal told
        if fraction - told >= 0.01 or fraction >= 1.0:
            told = fraction
            report(fraction)

    return progress
