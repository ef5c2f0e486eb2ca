"""Looks at repositories, judges what they offer, and fetches one model at a time.

GUI thread; every look at the network or the disk is a pool job. Nothing is asked of any server
before the user opens the dialog.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.featured_models import FeaturedModel, featured_models
from moelauncher.core.library.hub_files import DownloadProgress, Hub, HubChoice, parse_link
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.model_verdict import verdict_of
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_duration
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.library.download_dialog import DownloadDialog, Offer
from moelauncher.gui.services import Services

#: Judges one choice; the last argument: was it cancelled?
Judge = Callable[[Hub, HubChoice, Callable[[], bool]], Offer]


class Downloads(QObject):
    """The program behind :class:`DownloadDialog`.

    Signals:
        fetched(object): the path of a model that is whole.
        message(str, str): text and level for the status line.
    """

    fetched = Signal(object)
    message = Signal(str, str)

    def __init__(self, window: QWidget, services: Services, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        # A pool of its own: a server that hangs holds up nothing else.
        self._jobs = JobRunner(self)
        self._machine: Machine | None = None
        self._context: ContextSettings | None = None
        # A job that was told to stop ends a moment later: the next one waits for that.
        self._one_at_a_time = threading.Lock()
        self._running: HubChoice | None = None
        self._paused = False
        self._last: DownloadProgress | None = None
        self.dialog: DownloadDialog | None = None

    def set_machine(self, machine: Machine, context: ContextSettings) -> None:
        """What offers are judged by."""
        self._machine, self._context = machine, context

    def open(self) -> None:
        """Show the dialog, with suggestions where nothing was looked for."""
        if self.dialog is None:
            dialog = DownloadDialog(self._window)
            dialog.look_requested.connect(self.look)
            dialog.download_requested.connect(self.start)
            dialog.pause_requested.connect(self.pause)
            dialog.resume_requested.connect(self.resume)
            dialog.cancel_requested.connect(self.cancel)
            self.dialog = dialog
            self._suggest()
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.box.setFocus()

    def look(self, text: str) -> None:
        """List what ``text`` names; nothing named: the suggestions."""
        assert self.dialog is not None
        if not text.strip():
            self._suggest()
            return
        try:
            link = parse_link(text)
        except LauncherError as error:
            self.dialog.set_note(error.sentence, "warn")
            return
        self._jobs.cancel("judge")
        self.dialog.set_note(self.tr("Looking at {repo}.").format(repo=link.repo))
        self.dialog.set_offers([])
        make_hub = self._services.hub
        self._jobs.start(
            "look",
            lambda report, cancelled: make_hub().choices(link),
            self._looked,
            self._look_failed,
        )

    def start(self, choice: object) -> None:
        """Fetch a model."""
        if isinstance(choice, HubChoice) and self._running is None:
            self._running = choice
            self._last = None
            self.resume()

    def resume(self) -> None:
        """Go on with a download that was paused."""
        choice = self._running
        if choice is None:
            return
        self._paused = False
        self._show_progress()
        make_hub, folder = self._services.hub, self._services.paths.models

        def work(report: Report, cancelled: Callable[[], bool]) -> Path:
            with self._one_at_a_time:
                return make_hub().download(choice, folder, report, cancelled)

        self._jobs.start("download", work, self._done, self._failed, self._progressed)

    def pause(self) -> None:
        """Stop for now; what was fetched is kept."""
        self._jobs.cancel("download")
        self._paused = True
        self._show_progress()

    def cancel(self) -> None:
        """Stop, and delete what was fetched of the running download."""
        choice = self._running
        if choice is None:
            return
        self._jobs.cancel("download")
        self._running = None
        self._idle(self.tr("The download was stopped, and what was fetched is deleted."))
        make_hub, folder = self._services.hub, self._services.paths.models

        def work(report: Report, cancelled: Callable[[], bool]) -> None:
            with self._one_at_a_time:
                make_hub().forget(choice, folder)

        self._jobs.start("forget", work, lambda _: None, self._complain)

    def close(self) -> None:
        """End what is going on; an unfinished download goes on when it is asked for again."""
        self._jobs.close()
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None

    # Offers

    def _suggest(self) -> None:
        assert self.dialog is not None
        featured = featured_models(self._services.paths.config)
        self.dialog.set_note(
            self.tr(
                "Well-known Mixture-of-Experts models, judged for this machine before anything "
                "is downloaded. Or name a repository above."
            )
        )
        self.dialog.set_offers([Offer(model.name, model.about) for model in featured])
        make_hub, judge = self._services.hub, self._judge()
        self._jobs.cancel("look")
        self._jobs.start(
            "judge",
            lambda report, cancelled: _judge_featured(make_hub, featured, judge, report, cancelled),
            lambda _: None,
            self._look_failed,
            self._judged,
        )

    def _looked(self, choices: object) -> None:
        assert isinstance(choices, tuple)
        if self.dialog is None:
            return
        repo = choices[0].repo
        self.dialog.set_note(self.tr("What {repo} offers, the smallest first:").format(repo=repo))
        offers = [_offer_of(choice) for choice in choices]
        self.dialog.set_offers(offers)
        if len(offers) == 1:
            self.dialog.table.selectRow(0)
        make_hub, judge = self._services.hub, self._judge()
        self._jobs.start(
            "judge",
            lambda report, cancelled: _judge_all(make_hub, choices, judge, report, cancelled),
            lambda _: None,
            self._complain,
            self._judged,
        )

    def _judge(self) -> Judge:
        machine, context = self._machine, self._context

        def judge(hub: Hub, choice: HubChoice, cancelled: Callable[[], bool]) -> Offer:
            offer = _offer_of(choice)
            if machine is None or context is None:
                return replace(offer, verdict="")
            try:
                verdict = verdict_of(hub.facts(choice, cancelled), machine, context)
            except LauncherError as error:
                return replace(offer, verdict=error.message, level="bad")
            return replace(offer, verdict=verdict.text, level=verdict.level)

        return judge

    def _judged(self, judged: object) -> None:
        assert isinstance(judged, tuple)
        number, offer = judged
        if self.dialog is not None:
            self.dialog.set_offer(number, offer)

    def _look_failed(self, error: LauncherError) -> None:
        if self.dialog is not None:
            self.dialog.set_note(error.sentence, "warn")

    # The download

    def _progressed(self, progress: object) -> None:
        assert isinstance(progress, DownloadProgress)
        self._last = progress
        if not self._paused:
            self._show_progress()

    def _done(self, path: object) -> None:
        assert isinstance(path, Path)
        self._running = None
        text = self.tr("{name} is complete.").format(name=path.name)
        self._idle(text)
        self.message.emit(text, "info")
        self.fetched.emit(path)

    def _failed(self, error: LauncherError) -> None:
        # What was fetched is kept: Resume tries again.
        self._paused = True
        self._show_progress()
        if self.dialog is not None:
            self.dialog.set_note(error.sentence, "bad")
        self.message.emit(error.sentence, "warning")

    def _complain(self, error: LauncherError) -> None:
        self.message.emit(error.sentence, "warning")

    def _idle(self, text: str) -> None:
        if self.dialog is not None:
            self.dialog.set_idle()
            self.dialog.set_note(text)

    def _show_progress(self) -> None:
        if self.dialog is None or self._running is None:
            return
        last = self._last
        label = self._running.label
        if last is None:
            text, fraction = self.tr("{label}: beginning").format(label=label), 0.0
        else:
            text = _progress_text(label, last)
            fraction = last.n_bytes / last.total_bytes if last.total_bytes else 0.0
        if self._paused:
            text = self.tr("Paused. {text}").format(text=text)
        self.dialog.set_download(text, fraction, paused=self._paused)


def _offer_of(choice: HubChoice) -> Offer:
    about = tr("{n} files").format(n=len(choice.files)) if len(choice.files) > 1 else ""
    return Offer(choice.label, about, choice, tr("reading its header"))


def _progress_text(label: str, progress: DownloadProgress) -> str:
    here, total = format_bytes(progress.n_bytes), format_bytes(progress.total_bytes)
    if progress.checking:
        return tr("{label}: checking {here} of {total}").format(label=label, here=here, total=total)
    text = tr("{label}: {here} of {total}").format(label=label, here=here, total=total)
    if progress.bytes_per_s:
        left_s = (progress.total_bytes - progress.n_bytes) / progress.bytes_per_s
        text += tr(", {rate}/s, {left} left").format(
            rate=format_bytes(round(progress.bytes_per_s)), left=format_duration(left_s)
        )
    return text


def _judge_all(
    make_hub: Callable[[], Hub],
    choices: Sequence[HubChoice],
    judge: Judge,
    report: Report,
    cancelled: Callable[[], bool],
) -> None:
    hub = make_hub()
    for number, choice in enumerate(choices):
        if cancelled():
            return
        report((number, judge(hub, choice, cancelled)))


def _judge_featured(
    make_hub: Callable[[], Hub],
    featured: Sequence[FeaturedModel],
    judge: Judge,
    report: Report,
    cancelled: Callable[[], bool],
) -> None:
    hub = make_hub()
    for number, model in enumerate(featured):
        if cancelled():
            return
        try:
            choice = hub.choices(model.link)[0]
        except LauncherError as error:
            report((number, Offer(model.name, model.about, None, error.message, "bad")))
            continue
        offer = judge(hub, choice, cancelled)
        report((number, replace(offer, name=f"{model.name}  {choice.label}", about=model.about)))
