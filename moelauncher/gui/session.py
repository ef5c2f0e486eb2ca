"""What goes on between the selected model, the engine and the chat.

One state (``core.session_state``), one engine (through :class:`EngineBridge`); the chat and
its branches stand in :mod:`moelauncher.gui.chat_session`. It turns the window's wishes into
requests, and the engine's events into what the panes show. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core import settings as keys
from moelauncher.core.catalog import CatalogEntry, load_facts
from moelauncher.core.engine_protocol import (
    EngineEvent,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadProgress,
    LoadReport,
    LoadRequest,
    NativeLog,
    PromptProgress,
    TokenEvent,
    Unloaded,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.launch_plan import LaunchPlan
from moelauncher.core.load_records import LoadRecords
from moelauncher.core.log_file import log_native
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.model_facts import ModelFacts
from moelauncher.core.session_state import (
    BUSY_STATES,
    Controls,
    LaunchAction,
    Selection,
    SessionEvent,
    SessionState,
    controls,
    next_state,
    possible_events,
)
from moelauncher.core.token_rate import TokenRate
from moelauncher.gui.best_speeds import BestSpeeds
from moelauncher.gui.card_desk import CardDesk
from moelauncher.gui.chat_keys import ChatKeys
from moelauncher.gui.chat_session import ChatSession
from moelauncher.gui.context_watch import ContextWatch
from moelauncher.gui.downloads import Downloads
from moelauncher.gui.engine_bridge import EngineBridge
from moelauncher.gui.idle_unload import IdleUnload
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library import Library
from moelauncher.gui.live_apply import LiveApply
from moelauncher.gui.load_accounts import LoadAccounts
from moelauncher.gui.load_outcome import LoadOutcome
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.move_timing import MoveTiming
from moelauncher.gui.planner import Planner
from moelauncher.gui.profile_desk import ProfileDesk
from moelauncher.gui.services import Services
from moelauncher.gui.session_texts import SessionTexts, context_only
from moelauncher.gui.template_desk import TemplateDesk
from moelauncher.gui.tune_desk import TuneDesk

#: The live rate is sampled this often.
RATE_MS = 100


@dataclass(frozen=True)
class _LoadedModel:
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
    before: _LoadedModel | None = None
    failure: Callable[[str], None] | None = None


class Session(QObject):
    """The window's program.

    Signals:
        state_changed: the session stands somewhere else (SessionState).
    """

    state_changed = Signal(object)

    def __init__(
        self, window: MainWindow, services: Services, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._services = services
        self._texts = SessionTexts()
        self._jobs = JobRunner(self)
        self.bridge = EngineBridge(services.make_engine, self)
        self.library = Library(window.model_list, services, self._jobs, self)
        accounts = LoadAccounts(LoadRecords(services.paths.loads_file), self)
        self.planner = Planner(window, services, self._jobs, accounts, self)
        self.outcome = LoadOutcome(window, self.planner, accounts, self.launch, self)
        self._idle = IdleUnload(lambda: services.settings.get(keys.IDLE_UNLOAD_MINUTES), self)
        self.tuning = TuneDesk(
            window,
            self.planner,
            services,
            self._jobs,
            free_the_machine=self._free_for_tuning,
            load_again=self._load_after_tuning,
            parent=self,
        )
        self.speeds = BestSpeeds(services.state, window.model_list)
        self._when_free: Callable[[], None] | None = None
        self._load_after = False
        self.cards = CardDesk(window, self.planner, self._jobs, self.tuning, self.speeds, self)
        self.chat = ChatSession(window, services, self)
        self.room = ContextWatch(
            window, self.chat, self.bridge.engine, self._jobs, services.settings, self
        )
        self.templates = TemplateDesk(self.chat, self.bridge.engine, self._jobs, self)
        self.downloads = Downloads(window, services, self)
        self.profiles = ProfileDesk(window, services, self.planner, self)
        self.keys = ChatKeys(window, self.chat, self.stop, services.state, self)
        self.state = SessionState.EMPTY
        self._selection = Selection.NONE
        self._entry: CatalogEntry | None = None
        self._loaded: _LoadedModel | None = None
        self._loading: _Load | None = None
        #: The model that was taken out of memory: the next message loads it again.
        self._freed: Path | None = None
        self._waiting_text = ""  # the message that waits for it
        self._load_number = 0
        self._reply_number = 0
        self._unload_number = 0
        self._rate = TokenRate()
        self._prompt_from_s: float | None = None
        self._context_used: int | None = None
        self._prompt_tokens = 0
        self._last_stats: GenerationStats | None = None
        self._n_warnings = 0
        self._timing = MoveTiming()
        self._live = LiveApply(window.placement, self)
        window.placement.set_live(services.state.get("live") is True)
        self._rate_clock = QTimer(self)
        self._rate_clock.setInterval(RATE_MS)
        self._rate_clock.timeout.connect(self._sample_rate)
        self._wire()
        self._show()

    def _wire(self) -> None:
        window, services_state = self._window, self._services.state
        self.bridge.events.connect(self._on_events)
        window.model_list.entry_selected.connect(self._select)
        window.paths_dropped.connect(self.library.add_paths)
        window.placement.launch_requested.connect(self.launch)
        window.placement.cancel_requested.connect(self.cancel)
        window.placement.unload_requested.connect(self.unload)
        window.placement.live_toggled.connect(lambda on: services_state.set("live", on))
        self._live.due.connect(self._apply_live)
        self.state_changed.connect(self._apply_live)
        self.state_changed.connect(self._tuning_may_begin)
        window.chat.send_requested.connect(self.send)
        window.chat.stop_requested.connect(self.stop)
        self.chat.reply_wanted.connect(self._answer)
        self.chat.changed.connect(self._branch_changed)
        self.library.message.connect(window.status.set_message)
        self.tuning.best_known.connect(self.speeds.note_tuned)
        self.cards.message.connect(window.status.set_message)
        self.downloads.message.connect(window.status.set_message)
        self.downloads.fetched.connect(self.library.show_model)
        window.model_list.menus.get_model.connect(self.downloads.open)
        self.library.actions.loaded_path = self._path_in_memory
        self.planner.plan_changed.connect(self._show)
        self.planner.plan_changed.connect(self._judge_list)
        self.planner.machine_changed.connect(self._judge_list)
        self.planner.refused.connect(self._refused)
        self._idle.idle.connect(self._idle_for_long)
        self.state_changed.connect(self._idle.state_changed)

    # What the user wants

    def launch(self) -> None:
        """Load the selected model under the plan in view (Launch, Apply)."""
        facts, plan = self.planner.facts, self.planner.plan
        offered = self._controls()
        if facts is None or plan is None or not offered.launch_enabled:
            return
        if offered.launch_action is LaunchAction.CANCEL:
            return
        moves = offered.launch_action is LaunchAction.APPLY
        live_s = self._live.changed_s if self._live.waits else None
        self._timing.asked(time.monotonic() if live_s is None else live_s)
        self._live.taken()
        self._window.status.clear_message()
        self._loading = _Load(facts, plan, self._loaded)
        self._freed = None
        self.planner.save()
        self._move(SessionEvent.LAUNCH)
        self._load(facts, plan, keeps_chat=moves)

    def _load(self, facts: ModelFacts, plan: LaunchPlan, *, keeps_chat: bool = False) -> None:
        self.outcome.accounts.begins()
        self._load_number = self.bridge.engine.load(
            LoadRequest(
                path=facts.path,
                placement=plan.placement,
                context=plan.choices.context,
                use_mmap=plan.choices.use_mmap,
                expected_gpu_weights=plan.gpu_weights,
                keeps_chat=keeps_chat,
            )
        )

    def _free_for_tuning(self, then: Callable[[], None]) -> None:
        """Unload what is loaded, then call ``then``; it comes back by _load_after_tuning."""
        self._load_after = self.state is SessionState.READY
        self._when_free = then
        if self._load_after:
            self.unload()
        else:
            self._tuning_may_begin()

    def _tuning_may_begin(self, _: object = None) -> None:
        if self._when_free is not None and self._loaded is None and not self._is_busy():
            then, self._when_free = self._when_free, None
            then()

    def _load_after_tuning(self) -> None:
        if self.state is SessionState.READY or self._load_after:
            self._load_after = False
            self.launch()

    def _is_busy(self) -> bool:
        return self.state in BUSY_STATES

    def _apply_live(self, _: object = None) -> None:
        """Apply what the Live switch has waiting, as soon as it can be."""
        offered, plan = self._controls(), self.planner.plan
        if not self._live.waits or plan is None or offered.why_not == "no_change":
            return
        if offered.launch_action is not LaunchAction.APPLY or not offered.launch_enabled:
            return
        if not plan.forecast.fits and not plan.forecast.streams_from_disk:
            self._live.taken()
            self._window.status.set_message(self._texts.live_does_not_fit(), "warning")
            return
        self.launch()

    def cancel(self) -> None:
        """End the load that is going on; a reply that waits for it goes on as it was."""
        if SessionEvent.CANCEL in possible_events(self.state):
            in_reply = self.state is SessionState.MOVING
            self._move(SessionEvent.CANCEL)
            self.bridge.engine.stop(self._load_number if in_reply else None)

    def unload(self) -> None:
        """Take the model out of memory; the chat stays."""
        if SessionEvent.UNLOAD not in possible_events(self.state):
            return
        self._freed = self._loaded.facts.path if self._loaded is not None else None
        self._move(SessionEvent.UNLOAD)
        self.bridge.engine.stop()
        self._unload_number = self.bridge.engine.unload()

    def send(self, text: str) -> None:
        """Ask the loaded model; one that was freed is loaded again first."""
        if not self._controls().send_enabled or not text.strip():
            return
        if self._loaded is None:
            self._waiting_text = text
            self.launch()
            return
        self.chat.send(text)

    def stop(self) -> None:
        """End the reply; what is there stays."""
        if SessionEvent.STOP in possible_events(self.state):
            self._move(SessionEvent.STOP)
            self.bridge.engine.stop()

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word."""
        self.planner.set_snapshot(snapshot)
        self.tuning.on_snapshot(snapshot)
        self._window.status.set_gpu(*self._texts.gpu(snapshot))

    def close(self) -> None:
        """Remember the choices, end the engine and the pool. Blocks until they are gone."""
        self.planner.save()
        self._live.close()
        self.tuning.close()
        self._rate_clock.stop()
        self.downloads.close()
        self.library.close()
        self.chat.close()
        self.bridge.close()
        self._jobs.close()
        self.tuning.close_store()

    # The chat's wishes

    def _answer(self, request: GenerateRequest) -> None:
        """Let the loaded model answer; the chat has opened the reply."""
        self._rate.begin()
        self._prompt_from_s = time.monotonic()
        self._last_stats = None
        self._move(SessionEvent.SEND)
        self._rate_clock.start()
        self._reply_number = self.bridge.engine.generate(request)

    def _branch_changed(self) -> None:
        """The numbers of the visible branch are those of its last reply."""
        reply = self.chat.conversation.last_reply
        self._context_used = reply.stats.context_used if reply and reply.stats else None
        self._show()

    # Selection

    def _select(self, entry: object) -> None:
        self._entry = entry if isinstance(entry, CatalogEntry) else None
        if self.state is SessionState.FAILED:
            # Why the other one failed; "this file" would now mean the wrong one.
            self._window.status.clear_message()
        self._jobs.cancel("facts")
        if self._entry is None:
            self._selected(Selection.NONE, None)
        elif not self._entry.offered:
            self._selected(Selection.PROBLEM, None)
        else:
            path = self._entry.path
            # Until the facts are there, nothing can be launched.
            self._selected(Selection.NONE, None)
            self._jobs.start(
                "facts",
                lambda report, cancelled: load_facts(path),
                lambda facts: self._selected(Selection.LOADABLE, facts),
                self._unreadable,
            )

    def _selected(self, selection: Selection, facts: object) -> None:
        self._selection = selection
        self._move(SessionEvent.SELECT)
        known = facts if isinstance(facts, ModelFacts) else None
        if known is not None:
            self._window.heading.set_facts(known)
        elif self._entry is not None:
            self._window.heading.set_text(
                self._entry.name, self._entry.problem or self._entry.description
            )
        else:
            self._window.heading.set_facts(None)
        self.planner.select(known)
        self._show()

    def _unreadable(self, error: LauncherError) -> None:
        """The file changed since it was listed."""
        if self._entry is not None:
            entry = replace(self._entry, problem=error.message, hint=error.hint)
            self._window.model_list.upsert(entry)
        self._window.status.set_message(error.sentence, "error")

    def _refused(self, error: LauncherError) -> None:
        """llama.cpp itself does not take the file as it is set."""
        if self._entry is not None:
            self.library.refuse(self._entry.path, error.message)
        self._window.status.set_message(error.sentence, "warning")

    def _judge_list(self) -> None:
        """Rows say how they would run here, at the present context."""
        machine, context = self.planner.machine, self.planner.choices().context
        self.library.set_machine(machine, context)
        self.downloads.set_machine(machine, context)

    def _path_in_memory(self) -> Path | None:
        if self._loaded is not None:
            return self._loaded.facts.path
        return None if self._loading is None else self._loading.facts.path

    # The engine's events

    def _on_events(self, events: list[EngineEvent]) -> None:
        text: list[str] = []
        reasoning: list[str] = []
        for event in events:
            if isinstance(event, TokenEvent):
                if event.request == self._reply_number:
                    self._token(event)
                    text.append(event.text)
                    reasoning.append(event.reasoning)
                continue
            if isinstance(event, (Finished, GenerateFailed)):
                # What came before the end in this frame belongs to the reply.
                self._append("".join(text), "".join(reasoning))
                text.clear()
                reasoning.clear()
            self._on_event(event)
        self._append("".join(text), "".join(reasoning))

    def _on_event(self, event: EngineEvent) -> None:
        if isinstance(event, NativeLog):
            self._native_line(event)
        elif isinstance(event, (LoadProgress, Loaded, LoadFailed, LoadCancelled)):
            if event.request == self._load_number:
                self._on_load_event(event)
        elif isinstance(event, Unloaded):
            if event.request == self._unload_number:
                self._gone()
                self._window.status.set_prompt("")
                self._move(SessionEvent.UNLOADED)
        elif event.request == self._reply_number:
            self._on_reply_event(event)

    def _on_load_event(self, event: EngineEvent) -> None:
        if isinstance(event, LoadProgress):
            self._load_progressed(event)
        elif isinstance(event, Loaded):
            self._load_ended(event.report)
        elif isinstance(event, LoadFailed):
            self._load_failed(event)
        elif isinstance(event, LoadCancelled):
            if event.restored is not None and self._loaded is not None:
                self._came_back(event.restored)
                text = self._texts.move_cancelled(event.restored)
                self._window.status.set_message(text, "info")
                return
            self._gone()
            self._move(SessionEvent.CANCELLED)
            self._give_text_back()
            self._window.status.set_message(self._texts.load_cancelled(), "info")

    def _load_progressed(self, event: LoadProgress) -> None:
        if self.state is SessionState.CHECKING and event.stage != "checking":
            self._move(SessionEvent.ACCEPTED)
        if self._loading is not None and self.state is not SessionState.STOPPING:
            size_bytes = self._loading.facts.loaded_bytes
            self._window.placement.set_progress(
                self._texts.load_progress(event, size_bytes), self._texts.load_fraction(event)
            )

    def _load_ended(self, report: LoadReport) -> None:
        assert self._loading is not None
        facts, plan, failure = self._loading.facts, self._loading.plan, self._loading.failure
        before = self._loaded
        self._loaded = _LoadedModel(facts, plan, report)
        self._loading = None
        carried = report.carried
        if carried is None or carried.how == "read_again":
            self._context_used = None
        same = before is not None and before.facts.path == facts.path
        alone = same and before is not None and context_only(before.plan, plan)
        self._timing.loaded(facts.path, report.load_s, context_only=alone)
        self._window.memory.set_loaded(plan.forecast, weights_mapped=plan.choices.use_mmap)
        self._window.memory.set_loaded(report, weights_mapped=plan.choices.use_mmap)
        self._window.chat.set_model_name(facts.name)
        self.chat.set_model(facts.name, facts.path, report.switches, facts.metadata)
        self._window.chat.set_notice(self._texts.notice(report))
        if before is not None and before.facts.path == facts.path:
            mark = self._texts.mark(before.plan, plan)
            if mark:
                self._window.speed.mark(time.monotonic(), mark)
        self._went_on(SessionEvent.LOADED if failure is None else SessionEvent.RESTORED)
        for sentence in (*report.mismatches, *report.warnings):
            self._log("warning", sentence)
        self.outcome.loaded(facts, plan, report, self._texts.loaded(facts, report))
        if failure is not None:
            failure(self._texts.restored(facts))
        waiting, self._waiting_text = self._waiting_text, ""
        if waiting:
            self.send(waiting)

    def _load_failed(self, event: LoadFailed) -> None:
        assert self._loading is not None
        load = self._loading
        self._log("error", event.error.details)
        say = self.outcome.failed(event, load.facts, load.plan)
        if event.restored is not None and self._loaded is not None:
            self._came_back(event.restored)
            say(self._texts.back_again(event.restored))
            return
        self._gone()
        if load.before is not None and load.failure is None and self._can_restore():
            # Back to what was there before: its load is part of this one.
            self._loading = _Load(load.before.facts, load.before.plan, failure=say)
            self._load(load.before.facts, load.before.plan)
            return
        self._move(SessionEvent.LOAD_FAILED)
        self._give_text_back()
        say("" if load.failure is None else self._texts.not_restored(load.facts))

    def _can_restore(self) -> bool:
        return self.state in (SessionState.CHECKING, SessionState.LOADING)

    def _give_text_back(self) -> None:
        """The message that waited for the model goes back to where it was written."""
        waiting, self._waiting_text = self._waiting_text, ""
        if waiting:
            self._window.chat.composer.field.setPlainText(waiting)

    def _idle_for_long(self) -> None:
        if self.state is SessionState.READY:
            self.unload()
            minutes = self._services.settings.get(keys.IDLE_UNLOAD_MINUTES)
            self._window.status.set_message(self._texts.idle_unloaded(minutes), "info")

    def _came_back(self, report: LoadReport) -> None:
        """The load ended without a new placement; the one before is there again."""
        assert self._loaded is not None
        self._loading = None
        self._loaded = replace(self._loaded, report=report)
        self.outcome.accounts.ended(self._loaded.facts, self._loaded.plan, report)
        self._window.memory.set_loaded(report, weights_mapped=self._loaded.plan.choices.use_mmap)
        self._went_on(SessionEvent.RESTORED)

    def _went_on(self, event: SessionEvent) -> None:
        """The model is there (again), and with it a reply that waited."""
        if self.chat.conversation.streaming:
            if self.state is SessionState.STOPPING:
                self._show()
                return  # the reply itself says when it has ended
            # Its rate is that of the new place; the way there is a gap in the curve.
            self._window.speed.add_rate(time.monotonic(), None)
            self._rate.begin()
            self._timing.reply_goes_on()
        self._move(event)

    def _on_reply_event(self, event: EngineEvent) -> None:
        if isinstance(event, PromptProgress):
            self._prompt_progressed(event)
        elif isinstance(event, Finished):
            self._reply_ended(event.stats)
        elif isinstance(event, GenerateFailed):
            self._reply_closed()
            self.chat.fail(event.error)
            self._log("error", event.error.details)

    def _prompt_progressed(self, event: PromptProgress) -> None:
        rate = event.done / event.elapsed_s if event.done and event.elapsed_s > 0 else None
        left = (event.total - event.done) / rate if rate else None
        self._window.chat.set_prompt_progress(event.done, event.total, rate, left)
        self._window.status.set_prompt(self._texts.prompt(event.total, rate))
        self._prompt_tokens = event.cached + event.done
        self._show_context(self._prompt_tokens)

    def _token(self, event: TokenEvent) -> None:
        if self._prompt_from_s is not None:
            self._shade_prompt(event.time_s)
            self._prompt_from_s = None
        waited_s = self._timing.token(event.time_s)
        if waited_s is not None and self._loaded is not None:
            report = self._loaded.report
            self._window.status.set_message(self._texts.moved(report, waited_s), "good")
        if event.n_tokens == 1 and SessionEvent.FIRST_TOKEN in possible_events(self.state):
            self._move(SessionEvent.FIRST_TOKEN)
        self._rate.add(event.time_s)
        self._context_used = self._prompt_tokens + event.n_tokens

    def _append(self, text: str, reasoning: str) -> None:
        self.chat.append(text, reasoning)

    def _reply_ended(self, stats: GenerationStats) -> None:
        placement = self._texts.placement(self._loaded.plan) if self._loaded else ""
        self._last_stats = stats
        if self._loaded is not None:
            self.speeds.note_reply(self._loaded.facts, self._loaded.plan, stats)
        self._context_used = stats.context_used
        self._window.status.set_prompt(self._texts.prompt(stats.prompt_tokens, stats.prompt_tok_s))
        self._reply_closed()
        self.chat.finish(stats, placement)
        if stats.finish_reason == "context_full":
            self._window.status.set_message(self._texts.context_full(), "warning")

    def _reply_closed(self) -> None:
        self._sample_rate()
        self._rate_clock.stop()
        self._prompt_from_s = None
        now = time.monotonic()
        self._window.speed.add_rate(now, None)
        average = self._last_stats.tok_s if self._last_stats else None
        self._window.speed.set_summary(average, average)
        if SessionEvent.FINISHED in possible_events(self.state):
            self._move(SessionEvent.FINISHED)

    def _gone(self) -> None:
        """Nothing is loaded any more."""
        self._loaded = None
        self._loading = None
        self._context_used = None
        self._window.memory.set_loaded(None)
        self._window.chat.set_notice("")
        self._window.chat.set_model_name("")
        self.chat.set_model("", None, ())
        self.outcome.gone()
        self.planner.unloaded()

    # Speed

    def _sample_rate(self) -> None:
        now = time.monotonic()
        self._shade_prompt(now)
        rate = self._rate.rate(now)
        known = None if rate != rate else rate  # NaN: nothing to say yet
        if self.state in (SessionState.GENERATING, SessionState.STOPPING):
            self._window.speed.add_rate(now, known)
            average = self._rate.average()
            self._window.speed.set_summary(known, None if average != average else average)
            self._show_status(known)
            self._show_context(self._context_used)

    def _shade_prompt(self, until_s: float) -> None:
        if self._prompt_from_s is not None:
            self._window.speed.shade_prompt(self._prompt_from_s, until_s)

    # What is shown

    def _move(self, event: SessionEvent) -> None:
        before = self.state
        self.state = next_state(self.state, event, self._selection)
        if self.state is not before:
            self.state_changed.emit(self.state)
        self._show()

    def _controls(self) -> Controls:
        loaded, plan, facts = self._loaded, self.planner.plan, self.planner.facts
        same = loaded is not None and facts is not None and loaded.facts.path == facts.path
        return controls(
            self.state,
            self._selection,
            same_model=same,
            settings_differ=loaded is not None and plan is not None and _differ(loaded.plan, plan),
            reload_on_send=facts is not None and plan is not None and facts.path == self._freed,
        )

    def _show(self) -> None:
        shown = self._controls()
        loaded = self._loaded
        cancelling = shown.launch_action is LaunchAction.CANCEL
        self._window.placement.set_controls(
            shown,
            self._texts.launch(
                shown,
                loaded.plan if loaded else None,
                self.planner.plan,
                self._expected_s(),
            ),
            self._texts.why_not(shown.why_not, self._entry),
        )
        if not cancelling and self.state is not SessionState.STOPPING:
            self._window.placement.set_progress("", None)
        self._window.chat.set_controls(shown)
        self.chat.set_can_answer(shown.send_enabled and loaded is not None)
        idle = not self._is_busy() and self.planner.facts is not None
        self.tuning.set_able(idle, "" if idle else self._texts.why_no_tune(self.state))
        self._window.chat.set_empty_hint(self._texts.empty_chat(self.state, self._entry))
        self._show_context(self._context_used)
        self._window.status.set_build(*self._texts.build(loaded.report if loaded else None))
        self._show_status(None)

    def _show_context(self, used: int | None) -> None:
        self._context_used = used
        total = self._loaded.report.n_ctx if self._loaded else None
        self._window.chat.set_context(used, total)
        self.room.set_total(total)
        self._window.status.set_context(self._texts.context(used, total))

    def _expected_s(self) -> float | None:
        """How long applying what is in view will take."""
        loaded, plan = self._loaded, self.planner.plan
        if loaded is None or plan is None:
            return None
        alone = context_only(loaded.plan, plan)
        return self._timing.expected_s(loaded.facts.path, context_only=alone)

    def _show_status(self, rate: float | None) -> None:
        self._window.status.set_state(*self._texts.state(self.state, rate))

    def set_build(self, text: str) -> None:
        """The line about the installed llama.cpp build."""
        self.outcome.build_text = text
        self._texts.build_text = text
        self._show()

    def _native_line(self, event: NativeLog) -> None:
        log_native(event)
        if event.level in ("warning", "error"):
            self._log(event.level, event.text)

    def _log(self, level: str, text: str) -> None:
        if not text.strip():
            return
        self._window.log.append(level, text.rstrip())
        if level in ("warning", "error"):
            self._n_warnings += 1
            self._window.status.set_warnings(self._n_warnings)


def _differ(loaded: LaunchPlan, now: LaunchPlan) -> bool:
    """Whether applying ``now`` would change what runs, or what the slider promised."""
    return loaded.choices != now.choices
