"""After a crash: selects the model that ran, and places it more safely. One click, no launch.

In: the session and how the run before ended. Out: the placement pane, set; the user launches.
The window's thread.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject

from moelauncher.core.memory.safer_placement import safer_choices
from moelauncher.core.program.crash_watch import AbnormalEnd
from moelauncher.core.units import format_tokens
from moelauncher.gui.program.status_line import StatusLine
from moelauncher.gui.session import Session

#: What a model was doing that may have been too much for the GPU.
_BLAMES_PLACEMENT = ("loading", "prefill", "generating", "moving")


class SaferStart(QObject):
    """Made for one abnormal end."""

    def __init__(self, session: Session, status: StatusLine, before: AbnormalEnd) -> None:
        super().__init__(session)
        self._session = session
        self._status = status
        self._before = before
        self._path = Path(before.path)
        self._waits = False

    @property
    def offered(self) -> bool:
        """Whether a placement was at work and may be to blame, and its model is still there."""
        if self._before.page_error:
            return False
        if self._before.activity not in _BLAMES_PLACEMENT or not self._before.path:
            return False
        try:
            return self._path.is_file()
        except OSError:
            return False

    @property
    def offer(self) -> str:
        """What the button says."""
        return self.tr("Place it more safely")

    def take(self) -> None:
        """Select the model where it is not selected, then set its placement."""
        if self._take_now():
            return
        if not self._waits:
            self._waits = True
            self._session.planner.plan_changed.connect(self._plan_changed)
        self._session.library.show_model(self._path)

    def _plan_changed(self) -> None:
        if self._waits and self._is_selected():
            self._waits = False
            self._session.planner.plan_changed.disconnect(self._plan_changed)
            self._take_now()

    def _is_selected(self) -> bool:
        facts = self._session.planner.facts
        return facts is not None and facts.path == self._path

    def _take_now(self) -> bool:
        planner = self._session.planner
        if not self._is_selected() or planner.plan is None:
            return False
        found = safer_choices(planner.plan, self._before.cpu_moe, self._before.n_gpu_layers)
        if found is None:
            text = self.tr("All of it is in RAM already, with a small context: run the doctor.")
            self._status.set_message(text, "warning")
            return True
        slider = planner.plan.slider
        changed = found.context.n_ctx != planner.plan.choices.context.n_ctx
        planner.take(found)
        if changed:
            text = self.tr("A context of {n} is set. Press Launch.")
            text = text.format(n=format_tokens(found.context.n_ctx))
        elif slider.dense:
            text = self.tr("{n} of {total} layers are set to the GPU. Press Launch.")
            text = text.format(n=found.n_gpu_layers, total=slider.gpu_layers)
        else:
            text = self.tr("Experts of {n} of {total} layers are set to RAM. Press Launch.")
            text = text.format(n=found.cpu_moe, total=slider.last)
        self._status.set_message(text, "info")
        return True
