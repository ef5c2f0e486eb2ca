"""Tells at the start how the last run ended, and notes what this one does.

In: the session's states and a :class:`~moelauncher.core.program.crash_watch.CrashWatch`. Out: a
sentence for the status line, and notes in the marker. The window's thread.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject

from moelauncher.core.paths import shortened
from moelauncher.core.program.crash_watch import AbnormalEnd, CrashWatch
from moelauncher.core.session_state import SessionState
from moelauncher.gui.session import Session

_LOADS = (SessionState.CHECKING, SessionState.LOADING)
#: What went on in a chat, which the program shows again by itself.
_CHATS = ("prefill", "generating", "moving", "stopping")


class LastRun(QObject):
    """Watches one session. :meth:`close` at an orderly end."""

    def __init__(self, session: Session, logs: Path) -> None:
        super().__init__(session)
        self._session = session
        self._watch = CrashWatch(logs)
        #: How the run before ended, in words; "" where all was well.
        self.before = self._watch.start()
        self.news = self._story(self.before)
        session.state_changed.connect(self._note)

    def close(self) -> None:
        """This run ends in order."""
        self._watch.finish()

    def _note(self, state: SessionState) -> None:
        plan, facts = self._session.planner.plan, self._session.planner.facts
        self._watch.note(
            "loading" if state in _LOADS else state.value,
            facts.path.name if facts is not None else "",
            str(facts.path) if facts is not None else "",
            plan.placement.cpu_moe if plan is not None else None,
            plan.choices.n_gpu_layers if plan is not None else None,
        )

    def _story(self, before: AbnormalEnd | None) -> str:
        if before is None:
            return ""
        parts = [
            self.tr("The last run ended abruptly; your chat is open again.")
            if before.activity in _CHATS
            else self.tr("The last run ended abruptly; your chats were kept.")
        ]
        if before.activity == "loading" and before.model:
            text = self.tr("It was loading {model}: keep more of it in RAM this time.")
            parts.append(text.format(model=before.model))
        elif before.activity in ("prefill", "generating") and before.model:
            text = self.tr(
                "{model} was answering: if that recurs, keep more in RAM or update the driver."
            )
            parts.append(text.format(model=before.model))
        if before.file is not None:
            parts.append(self.tr("What happened: {file}.").format(file=shortened(before.file)))
        return " ".join(parts)
