"""What is in memory, and how it gets there: load events become what the panes show.

In: the session's wishes (load, cancel, unload) and the engine's answers to them. Out: the
one :class:`LoadedModel`, moves of the session's state, and the panes' values. GUI thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from moelauncher.core.engine_protocol import (
    Engine,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
    Unloaded,
)
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.session_state import SessionEvent, SessionState, possible_events
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.engine_log import EngineLog
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_outcome import LoadOutcome
from moelauncher.gui.memory.move_timing import MoveTiming
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.session_texts import SessionTexts, context_only
from moelauncher.gui.standing import Standing

#: The events that this desk takes.
LoadEvent = LoadProgress | Loaded | LoadFailed | LoadCancelled | Unloaded


@dataclass(frozen=True)
class LoadedModel:
    """What is in memory: the plan that it was loaded by, and what llama.cpp made of it."""

    facts: ModelFacts
    plan: LaunchPlan
    report: LoadReport


@dataclass(frozen=True)
class _Load:
    """A load that goes on. ``before`` was loaded until then, and comes back if this fails;
    ``failure`` says why it is coming back."""

    facts: ModelFacts
    plan: LaunchPlan
    before: LoadedModel | None = None
    failure: Callable[[str], None] | None = None


class LoadDesk(QObject):
    """Loads, moves and unloads.

    Signals:
        arrived: a load ended well, and all panes say so.
        came_to_nothing: a load ended with nothing loaded; the status line says why after it.
        chat_left: what the engine had evaluated of the chat is gone.
        reply_goes_on: the model is there again for a reply that waited.
    """

    arrived = Signal()
    came_to_nothing = Signal()
    chat_left = Signal()
    reply_goes_on = Signal()

    def __init__(
        self,
        window: MainWindow,
        engine: Engine,
        planner: Planner,
        outcome: LoadOutcome,
        chat: ChatSession,
        texts: SessionTexts,
        log: EngineLog,
        standing: Standing,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._engine = engine
        self._planner = planner
        self._outcome = outcome
        self._chat = chat
        self._texts = texts
        self._log = log
        self._standing = standing
        self.timing = MoveTiming()
        self.loaded: LoadedModel | None = None
        #: The model that was taken out of memory: the next message loads it again.
        self.freed: Path | None = None
        self._loading: _Load | None = None
        self._load_number = 0
        self._unload_number = 0

    @property
    def path_in_memory(self) -> Path | None:
        """The file that is loaded, or being loaded."""
        if self.loaded is not None:
            return self.loaded.facts.path
        return None if self._loading is None else self._loading.facts.path

    @property
    def at_work(self) -> tuple[ModelFacts, LaunchPlan] | None:
        """The model that is being loaded, else the one that is loaded, and its plan."""
        work = self._loading or self.loaded
        return None if work is None else (work.facts, work.plan)

    @property
    def goes_on(self) -> bool:
        """Whether a load has not ended yet, wanted or not."""
        return self._loading is not None

    def expected_s(self, plan: LaunchPlan | None) -> float | None:
        """How long applying ``plan`` to what is loaded will take; None where unknown."""
        if self.loaded is None or plan is None:
            return None
        alone = context_only(self.loaded.plan, plan)
        return self.timing.expected_s(self.loaded.facts.path, context_only=alone)

    # What the session wants

    def begin(
        self, facts: ModelFacts, plan: LaunchPlan, *, keeps_chat: bool, asked_s: float
    ) -> None:
        """Load ``facts`` under ``plan``, as the user asked at ``asked_s`` (monotonic)."""
        self.timing.asked(asked_s)
        self._loading = _Load(facts, plan, self.loaded)
        self.freed = None
        self._standing.move(SessionEvent.LAUNCH)
        self._load(facts, plan, keeps_chat=keeps_chat)

    def cancel(self) -> None:
        """End the load that is going on; a reply that waits for it goes on as it was."""
        in_reply = self._standing.state() is SessionState.MOVING
        self._standing.move(SessionEvent.CANCEL)
        self._engine.stop(self._load_number if in_reply else None)

    def unload(self) -> None:
        """Take the model out of memory."""
        self.freed = self.loaded.facts.path if self.loaded is not None else None
        self._standing.move(SessionEvent.UNLOAD)
        self._engine.stop()
        self._unload_number = self._engine.unload()

    def lost(self) -> None:
        """What ran the model is gone, and the model with it; the engine is not asked again."""
        possible = possible_events(self._standing.state())
        if self.loaded is not None and SessionEvent.ENGINE_LOST in possible:
            self._gone()
            self._standing.move(SessionEvent.ENGINE_LOST)

    def _load(self, facts: ModelFacts, plan: LaunchPlan, *, keeps_chat: bool = False) -> None:
        self._outcome.accounts.begins()
        self._load_number = self._engine.load(
            LoadRequest(
                path=facts.path,
                placement=plan.placement,
                context=plan.choices.context,
                use_mmap=plan.choices.use_mmap,
                weights_fit_ram=not plan.forecast.streams_from_disk,
                # Until the GPUs have said what they refuse, no load is held to it.
                expected_gpu_weights=(
                    plan.gpu_weights if self._planner.is_told(facts, plan) else {}
                ),
                keeps_chat=keeps_chat,
            )
        )

    # What the engine says

    def on_event(self, event: LoadEvent) -> None:
        """Show it; answers to earlier requests are dropped."""
        if isinstance(event, Unloaded):
            if event.request == self._unload_number:
                self._gone()
                self._window.status.set_prompt("")
                self._standing.move(SessionEvent.UNLOADED)
        elif event.request != self._load_number:
            return
        elif isinstance(event, LoadProgress):
            self._progressed(event)
        elif isinstance(event, Loaded):
            self._ended(event.report)
        elif isinstance(event, LoadFailed):
            self._failed(event)
        else:
            self._cancelled(event)

    def _progressed(self, event: LoadProgress) -> None:
        if self._standing.state() is SessionState.CHECKING and event.stage != "checking":
            self._standing.move(SessionEvent.ACCEPTED)
        if self._loading is not None and self._standing.state() is not SessionState.STOPPING:
            size_bytes = self._loading.facts.loaded_bytes
            self._window.placement.set_progress(
                self._texts.load_progress(event, size_bytes), self._texts.load_fraction(event)
            )

    def _ended(self, report: LoadReport) -> None:
        assert self._loading is not None
        facts, failure = self._loading.facts, self._loading.failure
        plan = self._planner.as_told(facts, self._loading.plan)
        before = self.loaded
        self.loaded = LoadedModel(facts, plan, report)
        self._loading = None
        carried = report.carried
        if carried is None or carried.how == "read_again":
            self.chat_left.emit()
        same = before is not None and before.facts.path == facts.path
        alone = same and before is not None and context_only(before.plan, plan)
        self.timing.loaded(facts.path, report.load_s, context_only=alone)
        self._window.memory.set_loaded(plan.forecast, weights_mapped=plan.choices.use_mmap)
        self._window.memory.set_loaded(report, weights_mapped=plan.choices.use_mmap)
        self._window.chat.set_model_name(facts.name)
        self._chat.set_model(facts.name, facts.path, report.switches, facts.metadata)
        self._window.chat.set_notice(self._texts.notice(report))
        if before is not None and before.facts.path == facts.path:
            mark = self._texts.mark(before.plan, plan)
            if mark:
                self._window.speed.mark(time.monotonic(), mark)
        self._went_on(SessionEvent.LOADED if failure is None else SessionEvent.RESTORED)
        for sentence in (*report.mismatches, *report.warnings):
            self._log.add("warning", sentence)
        in_reply = self._chat.open.answering is not None
        text = self._texts.loaded(facts, report, in_reply=in_reply)
        self._outcome.loaded(facts, plan, report, text)
        if failure is not None:
            failure(self._texts.restored(facts))
        self.arrived.emit()

    def _failed(self, event: LoadFailed) -> None:
        assert self._loading is not None
        load = self._loading
        self._log.add("error", event.error.details)
        say = self._outcome.failed(event, load.facts, load.plan)
        if event.restored is not None and self.loaded is not None:
            self._came_back(event.restored)
            say(self._texts.back_again(event.restored))
            return
        self._gone()
        if load.before is not None and load.failure is None and self._can_restore():
            # Back to what was there before: its load is part of this one.
            self._loading = _Load(load.before.facts, load.before.plan, failure=say)
            self._load(load.before.facts, load.before.plan)
            return
        self._standing.move(SessionEvent.LOAD_FAILED)
        self.came_to_nothing.emit()
        say("" if load.failure is None else self._texts.not_restored(load.facts))

    def _cancelled(self, event: LoadCancelled) -> None:
        if event.restored is not None and self.loaded is not None:
            self._came_back(event.restored)
            text = self._texts.move_cancelled(event.restored)
            self._window.status.set_message(text, "info")
            return
        self._gone()
        self._standing.move(SessionEvent.CANCELLED)
        self.came_to_nothing.emit()
        self._window.status.set_message(self._texts.load_cancelled(), "info")

    def _can_restore(self) -> bool:
        return self._standing.state() in (SessionState.CHECKING, SessionState.LOADING)

    def _came_back(self, report: LoadReport) -> None:
        """The load ended without a new placement; the one before is there again."""
        assert self.loaded is not None
        self._loading = None
        facts, plan = self.loaded.facts, self._planner.as_told(self.loaded.facts, self.loaded.plan)
        self.loaded = LoadedModel(facts, plan, report)
        told = self._planner.is_told(facts, plan)
        self._outcome.accounts.ended(facts, plan, report, weights_told=told)
        self._window.memory.set_loaded(report, weights_mapped=self.loaded.plan.choices.use_mmap)
        self._went_on(SessionEvent.RESTORED)

    def _went_on(self, event: SessionEvent) -> None:
        """The model is there (again), and with it a reply that waited."""
        if self._chat.open.answering is not None:
            if self._standing.state() is SessionState.STOPPING:
                self._standing.show()
                return  # the reply itself says when it has ended
            self.reply_goes_on.emit()
            self.timing.reply_goes_on()
        self._standing.move(event)

    def _gone(self) -> None:
        """Nothing is loaded any more."""
        self.loaded = None
        self._loading = None
        self.chat_left.emit()
        self._window.memory.set_loaded(None)
        self._window.chat.set_notice("")
        self._window.chat.set_model_name("")
        self._chat.set_model("", None, ())
        self._outcome.gone()
        self._planner.unloaded()
