"""Tells at the start how the last run ended, and notes what this one does.

In: the session's states and a :class:`~moelauncher.core.program.crash_watch.CrashWatch`. Out: a
sentence for the status line, and notes in the marker. The window's thread; disks are looked at by
jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject

from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import shortened
from moelauncher.core.program.crash_watch import AbnormalEnd, CrashWatch
from moelauncher.core.program.mapped_files import FileFate, as_they_stand, fate_of
from moelauncher.core.session_state import SessionState
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.session import Session

_log = logging.getLogger(__name__)

_LOADS = (SessionState.CHECKING, SessionState.LOADING)
#: What went on in a chat, which the program shows again by itself.
_CHATS = ("prefill", "generating", "moving", "stopping")


class LastRun(QObject):
    """Watches one session. :meth:`close` at an orderly end."""

    def __init__(self, session: Session, logs: Path, jobs: JobRunner) -> None:
        super().__init__(session)
        self._session = session
        self._jobs = jobs
        self._watch = CrashWatch(logs)
        self._mapped: tuple[Path, ...] = ()
        #: How the run before ended, and that in words; None and "" where all was well.
        self.before = self._watch.start()
        self.news = ""
        session.state_changed.connect(self._note)

    def tell(self, told: Callable[[str], None]) -> None:
        """Call ``told`` with how the run before ended, if that was abnormal.

        Once more where its files say more of it: their disk may take its time.
        """
        before = self.before
        if before is None:
            return
        self._say(told, before, None)
        if before.page_error and before.mapped:
            self._jobs.start(
                "fate of mapped files",
                lambda report, cancelled: fate_of(before.mapped),
                lambda fate: self._say(told, before, fate),
                _note_failure,
            )

    def close(self) -> None:
        """This run ends in order."""
        self._watch.finish()

    def _note(self, state: SessionState) -> None:
        at_work = self._session.at_work
        facts, plan = at_work or (self._session.planner.facts, self._session.planner.plan)
        self._watch.note(
            "loading" if state in _LOADS else state.value,
            facts.path.name if facts is not None else "",
            str(facts.path) if facts is not None else "",
            plan.placement.cpu_moe if plan is not None else None,
            plan.choices.n_gpu_layers if plan is not None else None,
        )
        mapped = at_work[0].files if at_work and at_work[1].choices.use_mmap else ()
        if mapped != self._mapped or state is SessionState.CHECKING:
            self._mapped = mapped
            self._jobs.start(
                "mapped files",
                lambda report, cancelled: as_they_stand(mapped),
                self._watch.note_mapped,  # type: ignore[arg-type]
                _note_failure,
            )

    def _say(self, told: Callable[[str], None], before: AbnormalEnd, fate: object) -> None:
        self.news = self._story(before, fate)
        told(self.news)

    def _story(self, before: AbnormalEnd, fate: object) -> str:
        parts = [
            self.tr("The last run ended abruptly; your chat is open again.")
            if before.activity in _CHATS
            else self.tr("The last run ended abruptly; your chats were kept.")
        ]
        if before.page_error:
            parts.append(self._unreadable(before, fate))
        elif before.activity == "loading" and before.model:
            text = self.tr("It was loading {model}: keep more of it in RAM this time.")
            parts.append(text.format(model=before.model))
        elif before.activity in ("prefill", "generating") and before.model:
            text = self.tr(
                "{model} was answering: if that recurs, keep more in RAM or update the driver."
            )
            parts.append(text.format(model=before.model))
        if before.file is not None:
            parts.append(self.tr("What happened: {file}.").format(file=shortened(before.file)))
        return " ".join(part for part in parts if part)

    def _unreadable(self, before: AbnormalEnd, fate: object) -> str:
        """Why a page of a file in memory could not be read."""
        if not isinstance(fate, tuple):
            if before.activity != "loading" or not before.model:
                return ""
            text = self.tr(
                "A part of {model} could not be read while it was loaded: check its file and drive."
            )
            return text.format(model=before.model)
        path, what = fate
        texts = {
            FileFate.CHANGED: self.tr(
                "{file} was cut short or overwritten while it was loaded: press Launch once it is "
                "whole."
            ),
            FileFate.GONE: self.tr(
                "{file} is not there any more: it went away, or its drive did, while it was loaded."
            ),
            FileFate.UNCHANGED: self.tr(
                "Probably a part of {file} could not be read, though the file is unchanged: check "
                "its drive, or switch off “Map model files”."
            ),
        }
        return texts[what].format(file=path.name)


def _note_failure(error: LauncherError) -> None:
    _log.warning("%s %s", error.sentence, error.details)
