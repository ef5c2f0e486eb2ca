"""Taking measurements along: copied, exported, and other programs' drawn beside them.

Stands behind :class:`~moelauncher.gui.speed.tune_desk.TuneDesk`, whose store it reads and adds to.
GUI thread; files are read and written in the pool.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.engine_protocol import GenerationStats, LoadRequest
from moelauncher.core.errors import LauncherError
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.speed.llama_bench_json import read_llama_bench
from moelauncher.core.speed.measured_rows import new_ones, other_series, without_chats
from moelauncher.core.speed.measurement import CHAT, LLAMA_BENCH, Measurement
from moelauncher.core.speed.measurement_export import to_csv, to_json, to_markdown
from moelauncher.core.speed.tune_events import setting_of
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_desk import LoadedModel
from moelauncher.gui.speed.known_speeds import KnownSpeeds

_LANE = "measurements"
#: Replies of fewer tokens say little of a speed.
_SHORTEST_REPLY = 16
#: Entries of the menu that copy; those behind them have to do with files.
_N_COPIES = 2
_BAD_IN_NAMES = re.compile(r'[\\/:*?"<>|\x00-\x1f]+')


_log = logging.getLogger(__name__)


class ShareDesk(QObject):
    """One window's measurements of the selected model.

    Signals:
        message(str, str): a sentence for the status line, and its level.
    """

    message = Signal(str, str)

    def __init__(
        self,
        window: MainWindow,
        known: KnownSpeeds,
        jobs: JobRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._known = known
        self._jobs = jobs
        self._facts: ModelFacts | None = None
        self._found: list[Measurement] = []
        known.measurements_known.connect(self._show)
        window.speed.menu_wanted.connect(self._fill)
        window.speed.results_dropped.connect(self.take_results)

    def _show(self, facts: ModelFacts | None, found: Sequence[Measurement]) -> None:
        self._facts, self._found = facts, without_chats(found)
        if facts is None:
            self._window.speed.set_series(())
            return
        here = self._known.machine().name
        series = other_series(self._found, here, dense=not facts.expert_layers)
        self._window.speed.set_series(series)

    # Replies in chats

    def note_reply(self, loaded: LoadedModel, stats: GenerationStats) -> None:
        """Keep a reply's rates, apart from what is measured for its own sake."""
        store = self._known.store
        if store is None or store.read_only or stats.completion_tokens < _SHORTEST_REPLY:
            return
        report, facts = loaded.report, loaded.facts
        request = LoadRequest(
            report.path, report.placement, report.context, use_mmap=loaded.plan.choices.use_mmap
        )
        measured = Measurement(
            model=self._known.fingerprint(facts),
            model_name=facts.name,
            setting=setting_of(request),
            machine=self._known.machine(),
            time_s=time.time(),
            n_prompt=stats.prompt_tokens - stats.cached_tokens,
            n_generated=stats.completion_tokens,
            depth=stats.prompt_tokens,
            prompt_tok_s=stats.prompt_tok_s,
            tok_s=stats.tok_s,
            source=CHAT,
            threads=report.n_threads,
            flash_attention=report.flash_attention,
        )

        def work(report: object, cancelled: object) -> object:
            store.add(measured)
            return None

        # Its own lane: nothing that comes later may take its place.
        lane = f"{_LANE} {measured.time_s}"
        self._jobs.start(lane, work, lambda _: None, _not_kept)

    # What the menu offers

    def _fill(self, menu: QMenu) -> None:
        any_, facts = bool(self._found), self._facts
        imported = any(one.source == LLAMA_BENCH for one in self._found)
        entries: tuple[tuple[str, bool, Callable[[], None]], ...] = (
            (self.tr("Copy as Markdown"), any_, partial(self._copy, to_markdown)),
            (self.tr("Copy as CSV"), any_, partial(self._copy, _csv)),
            (self.tr("Export…"), any_, self._ask_where),
            (self.tr("Import llama-bench results…"), facts is not None, self._ask_what),
            (self.tr("Remove imported results"), imported, self._remove),
        )
        for number, (text, enabled, act) in enumerate(entries):
            if number == _N_COPIES:
                menu.addSeparator()
            action = menu.addAction(text)
            action.setEnabled(enabled)
            action.triggered.connect(lambda _checked, act=act: act())

    def _copy(self, text_of: Callable[[list[Measurement], ModelFacts | None], str]) -> None:
        QApplication.clipboard().setText(text_of(self._found, self._facts))

    def _ask_where(self) -> None:
        if self._facts is None:
            return
        kinds = {
            self.tr("Markdown, to paste in a forum (*.md)"): ".md",
            self.tr("CSV, every repeat (*.csv)"): ".csv",
            self.tr("JSON, every repeat (*.json)"): ".json",
        }
        stem = _BAD_IN_NAMES.sub("-", self._facts.name).strip(" .-") or "measurements"
        name, kind = QFileDialog.getSaveFileName(
            self._window, self.tr("Export measurements"), f"{stem}.md", ";;".join(kinds)
        )
        if name:
            path = Path(name)
            if path.suffix.lower() not in kinds.values():
                path = path.with_name(path.name + kinds.get(kind, ".md"))
            self.export(path)

    def export(self, path: Path) -> None:
        """Write all that is stored of the selected model; the ending says in which form."""
        found, facts = list(self._found), self._facts
        ending = path.suffix.lower()

        def work(report: object, cancelled: object) -> object:
            if ending == ".csv":
                text = to_csv(found)
            else:
                text = to_json(found) if ending == ".json" else to_markdown(found, facts)
            write_text_atomically(path, text)
            return path

        self._jobs.start(_LANE, work, self._exported, self._failed)

    def _exported(self, path: object) -> None:
        self.message.emit(self.tr("Exported to {path}.").format(path=path), "info")

    # Results of other programs

    def _ask_what(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(
            self._window,
            self.tr("Import what llama-bench -o json printed"),
            "",
            self.tr("llama-bench results (*.json *.jsonl)"),
        )
        if names:
            self.take_results([Path(name) for name in names])

    def take_results(self, paths: Sequence[Path]) -> None:
        """Read and store what llama-bench printed of the selected model."""
        facts, store = self._facts, self._known.store
        if facts is None or store is None:
            self.message.emit(self.tr("Select the model that was measured first."), "warning")
            return
        if store.read_only:
            self.message.emit(store.problem, "warning")
            return
        model = self._known.fingerprint(facts)

        def work(report: object, cancelled: object) -> object:
            found = [one for path in paths for one in read_llama_bench(path, facts)]
            fresh = new_ones(found, store.of_model(model))
            store.add_all(fresh)
            return len(fresh)

        self._jobs.start(_LANE, work, self._imported, self._failed)

    def _imported(self, n: object) -> None:
        text = self.tr("{n} repeats imported.").format(n=n)
        self.message.emit(text if n else self.tr("These results are here already."), "info")
        self._known.read_again()
        self._window.speed.setting_button.setChecked(True)

    def _remove(self) -> None:
        facts, store = self._facts, self._known.store
        if facts is None or store is None:
            return
        try:
            store.remove(self._known.fingerprint(facts), LLAMA_BENCH)
        except LauncherError as error:
            self._failed(error)
        self._known.read_again()

    def _failed(self, error: LauncherError) -> None:
        self.message.emit(error.sentence, "error")


def _csv(found: Sequence[Measurement], _facts: ModelFacts | None) -> str:
    return to_csv(found)


def _not_kept(error: LauncherError) -> None:
    # Nobody asked for it; where the disk is full, the chat that is not kept is the news.
    _log.warning("%s %s", error.sentence, error.details)
