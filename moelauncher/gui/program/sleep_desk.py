"""Before the machine sleeps a reply pauses and the chat is kept; after waking the GPU is looked at.

In: a :class:`~moelauncher.core.program.sleep_source.SleepSource` and the session. Out: the reply
goes on, or the window says that its GPU is gone. GUI thread; looking is a pool job in the child
process, since a driver that did not survive the sleep may end whoever asks it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from moelauncher.core.engine_protocol import Engine
from moelauncher.core.errors import LauncherError
from moelauncher.core.machine import BackendDevice
from moelauncher.core.program.sleep_source import NoSleepSource, SleepSource
from moelauncher.core.session_state import SessionEvent, SessionState, possible_events
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.turn_desk import TurnDesk
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.memory.load_desk import LoadDesk
from moelauncher.gui.program.status_line import StatusLine
from moelauncher.gui.standing import Standing

_log = logging.getLogger(__name__)


class SleepDesk(QObject):
    """Call :meth:`close` in the end.

    Signals:
        restart_requested(): end this program, and start it anew.
    """

    restart_requested = Signal()
    # From whatever thread the source tells on.
    _sleeps = Signal()
    _wakes = Signal()

    def __init__(
        self,
        loads: LoadDesk,
        chat: ChatSession,
        turns: TurnDesk,
        engine: Engine,
        status: StatusLine,
        jobs: JobRunner,
        probe: Callable[[], Sequence[BackendDevice]],
        standing: Standing,
        stop: Callable[[], None],
        parent: QObject | None = None,
    ) -> None:
        """``probe`` asks a fresh child for its devices (pool thread); ``stop`` ends a reply."""
        super().__init__(parent)
        self._source: SleepSource = NoSleepSource()
        self._loads = loads
        self._chat = chat
        self._turns = turns
        self._engine = engine
        self._status = status
        self._jobs = jobs
        self._probe = probe
        self._standing = standing
        self._stop = stop
        self._asleep = False
        #: The reply that goes on after waking: its chat's id, its turn's key.
        self._paused: tuple[str, int] | None = None
        self._keeping = 0  # the request that writes the chat's state
        self._sleeps.connect(self._going_to_sleep)
        self._wakes.connect(self._woke)

    def listen(self, source: SleepSource) -> None:
        """From now on ``source`` is heard; it is closed with this desk."""
        self._source = source
        if not source.start(self._sleeps.emit, self._wakes.emit):
            _log.info("this system tells nothing of its sleep")

    def close(self) -> None:
        """Listen no longer."""
        self._source.close()

    def state_changed(self, state: SessionState) -> None:
        """The session stands in ``state`` now."""
        if self._asleep and not self._keeping and state not in _STOPS:
            self._keep()

    def kept(self, request: int) -> None:
        """The engine has written the state that ``request`` asked for."""
        if self._keeping and request == self._keeping:
            self._keeping = 0
            self._source.ready()

    # Going

    def _going_to_sleep(self) -> None:
        self._asleep = True
        self._paused = None
        self._keeping = 0
        if SessionEvent.STOP in possible_events(self._standing.state()):
            chat = self._chat.open.answering
            self._paused = (chat.id, chat.conversation.path[-1].key) if chat else None
            self._stop()
        elif self._standing.state() not in _STOPS:
            self._keep()

    def _keep(self) -> None:
        """The chat's text is stored by now, or in its thread's hands; its state is not."""
        if self._loads.loaded is None:
            self._source.ready()
        else:
            self._keeping = self._engine.keep_chat()

    # Coming back

    def _woke(self) -> None:
        self._asleep = False
        self._keeping = 0
        loaded = self._loads.loaded
        names = [] if loaded is None else [d.name for d in loaded.report.placement.devices]
        if not names:
            self._go_on()
            return
        self._status.set_message(self.tr("Looking whether the GPU woke up too."), "info")
        self._jobs.start(
            "wake",
            lambda report, cancelled: list(self._probe()),
            lambda devices: self._probed(names, devices),
            lambda error: self._lost(names, error),
        )

    def _probed(self, names: Sequence[str], devices: object) -> None:
        assert isinstance(devices, list)
        there = {device.name for device in devices}
        gone = [name for name in names if name not in there]
        if gone:
            self._lost(gone, None)
        else:
            self._go_on()

    def _go_on(self) -> None:
        paused, self._paused = self._paused, None
        chat = self._chat.chat
        path = chat.conversation.path
        if paused is not None and paused[0] != chat.id:
            text = self.tr("The sleep interrupted a reply in another chat.")
            self._status.set_message(
                text, "info", self.tr("Show"), lambda: self._chat.open_chat(paused[0])
            )
            return
        if paused is None or not path or path[-1].key != paused[1] or not path[-1].turn.can_go_on:
            self._status.clear_message()
            return
        if self._standing.state() is not SessionState.READY:
            return
        self._turns.act("go_on", paused[1])
        self._status.set_message(self.tr("The reply that the sleep interrupted goes on."), "info")

    def _lost(self, names: Sequence[str], error: LauncherError | None) -> None:
        """The engine is not touched any more: what it would free is not there."""
        self._paused = None
        self._loads.lost()
        text = self.tr(
            "{names} did not come back after the sleep, so the model is gone. Your chat is kept. "
            "Restart MoE Launcher; if that does not help, restart the computer."
        ).format(names=", ".join(names))
        _log.warning("%s %s", text, error.details if error is not None else "")
        self._status.set_message(
            text, "error", self.tr("Restart MoE Launcher"), self.restart_requested.emit
        )


_STOPS = (
    SessionState.PREFILL,
    SessionState.GENERATING,
    SessionState.MOVING,
    SessionState.STOPPING,
)
