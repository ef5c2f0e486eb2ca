"""How each listed model would run on this machine, worked out in the background.

GUI thread; reading headers and forecasting is one pool job that goes through the list, so the
newest machine and context count. What llama.cpp itself refused stays refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.model_verdict import verdict_of
from moelauncher.gui.jobs import JobRunner, Report

#: A machine or context that changes is judged by when it has been quiet for this long.
_QUIET_MS = 400
#: Free memory is judged in steps of this size, so that noise changes no verdict.
_STEP_BYTES = 256 << 20
_BUNDLE_S = 0.1
#: The first ones may be in view; after them the job rests as long as it worked, for reading a
#: header is Python's work and holds up the window's thread.
_AT_ONCE = 16
_LONGEST_REST_S = 0.05
#: Tensor tables take most of it: a few hundred kilobytes a model.
_FACTS_KEPT = 24


class Verdicts(QObject):
    """Judges models one after the other.

    Signals:
        judged(object): a list of (path, text, level).
    """

    judged = Signal(object)

    def __init__(self, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._machine: Machine | None = None
        self._context: ContextSettings | None = None
        self._asked: object = None
        self._entries: list[CatalogEntry] = []
        self._known: dict[Path, object] = {}  # path: what its verdict was made for
        self._refused: set[Path] = set()
        self._facts: dict[Path, tuple[CatalogEntry, ModelFacts]] = {}
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(_QUIET_MS)
        self._quiet.timeout.connect(self._judge)

    def set_machine(self, machine: Machine, context: ContextSettings) -> None:
        """What to judge by, from now on."""
        self._machine, self._context = machine, context
        if self._question() != self._asked:
            self._quiet.start()

    def set_entries(self, entries: Sequence[CatalogEntry]) -> None:
        """The models of the list, in its order."""
        self._entries = [entry for entry in entries if entry.offered]
        listed = {entry.path for entry in self._entries}
        self._known = {path: known for path, known in self._known.items() if path in listed}
        self._refused &= listed
        if self._machine is not None:
            self._quiet.start()

    def refuse(self, path: Path, text: str) -> None:
        """llama.cpp itself does not take this file."""
        self._refused.add(path)
        self.judged.emit([(path, text, "bad")])

    def close(self) -> None:
        """No more verdicts."""
        self._quiet.stop()
        self._jobs.cancel("verdicts")

    def _question(self) -> object:
        """What a verdict depends on, coarse enough that noise does not change it."""
        machine = self._machine
        if machine is None:
            return None
        gpus = tuple((gpu.name, _steps(gpu.free_bytes)) for gpu in machine.gpus)
        margins = tuple(sorted(machine.margins.leave_free_bytes.items()))
        return gpus, margins, _steps(machine.ram_free_bytes), self._context

    def _judge(self) -> None:
        machine, context = self._machine, self._context
        if machine is None or context is None:
            return
        question = self._asked = self._question()
        waiting = [
            entry
            for entry in self._entries
            if entry.path not in self._refused and self._known.get(entry.path) != (question, entry)
        ]
        if not waiting:
            return
        facts = self._facts

        def work(report: Report, cancelled: Callable[[], bool]) -> None:
            _judge_all(waiting, machine, context, facts, report, cancelled)

        self._jobs.start(
            "verdicts", work, lambda _: None, _ignore, lambda some: self._take(question, some)
        )

    def _take(self, question: object, some: object) -> None:
        assert isinstance(some, list)
        told = []
        for entry, text, level in some:
            if entry.path in self._refused:
                continue
            self._known[entry.path] = (question, entry)
            told.append((entry.path, text, level))
        self.judged.emit(told)


def _steps(n_bytes: int | None) -> int | None:
    return None if n_bytes is None else n_bytes // _STEP_BYTES


def _judge_all(
    entries: Sequence[CatalogEntry],
    machine: Machine,
    context: ContextSettings,
    known: dict[Path, tuple[CatalogEntry, ModelFacts]],
    report: Report,
    cancelled: Callable[[], bool],
) -> None:
    # ``known`` only saves time: a job that was replaced may still write to it for a moment.
    bundle: list[tuple[CatalogEntry, str, str]] = []
    told_s = time.monotonic()
    for number, entry in enumerate(entries):
        if cancelled():
            return
        begun_s = time.thread_time()
        kept = known.get(entry.path)
        try:
            facts = kept[1] if kept is not None and kept[0] == entry else load_facts(entry.path)
            verdict = verdict_of(facts, machine, context)
        except LauncherError as error:
            bundle.append((entry, error.message, "bad"))
            continue
        if len(known) < _FACTS_KEPT or entry.path in known:
            known[entry.path] = (entry, facts)
        bundle.append((entry, verdict.text, verdict.level))
        if time.monotonic() - told_s >= _BUNDLE_S:
            report(bundle)
            bundle = []
            told_s = time.monotonic()
        if number >= _AT_ONCE:
            time.sleep(min(_LONGEST_REST_S, time.thread_time() - begun_s))
    report(bundle)


def _ignore(error: LauncherError) -> None:
    """A verdict that cannot be given is not missed."""
