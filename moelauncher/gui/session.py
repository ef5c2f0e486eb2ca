"""What goes on between the selected model, the engine and the chat.

The place of the one state (``core.session_state``) and of the user's wishes. The engine's
events (through :class:`EngineBridge`) are dispatched here and end at a desk:
:mod:`moelauncher.gui.memory.load_desk` for what is in memory,
:mod:`moelauncher.gui.chats.reply_desk` for the reply; the chat that is shown stands in
:mod:`moelauncher.gui.chats.chat_session`, and what is asked in it goes through
:mod:`moelauncher.gui.chats.turn_desk`. GUI thread only.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Signal

from moelauncher.core.chats.kept_chat import KeptChat
from moelauncher.core.engine_protocol import ChatKept, EngineEvent, NativeLog
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.memory.load_records import LoadRecords
from moelauncher.core.program import settings as keys
from moelauncher.core.session_state import (
    Controls,
    LaunchAction,
    SessionEvent,
    SessionState,
    controls,
    next_state,
    possible_events,
)
from moelauncher.gui.chats.answers_desk import AnswersDesk
from moelauncher.gui.chats.chat_keys import ChatKeys
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.context_watch import ContextWatch
from moelauncher.gui.chats.kept_chats_desk import KeptChatsDesk
from moelauncher.gui.chats.reply_desk import ReplyDesk, ReplyEvent
from moelauncher.gui.chats.template_desk import TemplateDesk
from moelauncher.gui.chats.turn_desk import TurnDesk
from moelauncher.gui.engine_bridge import EngineBridge
from moelauncher.gui.engine_log import EngineLog
from moelauncher.gui.jobs import JobRunner
from moelauncher.gui.library.card_desk import CardDesk
from moelauncher.gui.library.downloads import Downloads
from moelauncher.gui.library.library import Library
from moelauncher.gui.library.selection_desk import SelectionDesk
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.idle_unload import IdleUnload
from moelauncher.gui.memory.live_apply import LiveApply
from moelauncher.gui.memory.load_accounts import LoadAccounts
from moelauncher.gui.memory.load_desk import LoadDesk, LoadedModel, LoadEvent
from moelauncher.gui.memory.load_outcome import LoadOutcome
from moelauncher.gui.memory.machine_loan import Lender, MachineLoan
from moelauncher.gui.memory.planned_machine import PlannedMachine
from moelauncher.gui.memory.planner import Planner
from moelauncher.gui.memory.profile_desk import ProfileDesk
from moelauncher.gui.program.sleep_desk import SleepDesk
from moelauncher.gui.services import Services
from moelauncher.gui.session_texts import SessionTexts
from moelauncher.gui.session_view import SessionView
from moelauncher.gui.speed.best_speeds import BestSpeeds
from moelauncher.gui.speed.known_speeds import KnownSpeeds
from moelauncher.gui.speed.outlook_desk import OutlookDesk
from moelauncher.gui.speed.share_desk import ShareDesk
from moelauncher.gui.speed.tune_desk import TuneDesk
from moelauncher.gui.standing import Standing


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
        self.machine = PlannedMachine(window, services, self._jobs, accounts, self)
        self.planner = Planner(window, services, self._jobs, self.machine, accounts, self)
        self.outcome = LoadOutcome(window, self.planner, accounts, self.launch, self)
        self.machine.weights_told.connect(self.outcome.weights_told)
        self._idle = IdleUnload(lambda: services.settings.get(keys.IDLE_UNLOAD_MINUTES), self)
        self.speeds = BestSpeeds(services.state, window.model_list)
        outlook = OutlookDesk(window, self.planner, services, self._jobs, self.speeds, self)
        self.known = KnownSpeeds(window, self.planner, services, outlook, self)
        self.loan = MachineLoan(
            Lender(
                lambda: self.state,
                lambda: self._loads.loaded,
                unload=self.unload,
                load=self._load_again,
                apply=self._apply_taken,
            ),
            self,
        )
        self.tuning = TuneDesk(
            window,
            self.planner,
            services,
            self._jobs,
            self.known,
            outlook,
            self.loan,
            self,
        )
        self.answers = AnswersDesk(window, self.planner, services, self._jobs, self.loan, self)
        self.tuning.compare_wanted.connect(self.answers.offer)
        self.share = ShareDesk(window, self.known, self._jobs, self)
        self.cards = CardDesk(
            window,
            self.machine,
            self.planner,
            self._jobs,
            self.known,
            self.speeds,
            outlook,
            self,
        )
        self.chat = ChatSession(window, services, self)
        self.kept_chats = KeptChatsDesk(window, self.chat, self)
        self.turns = TurnDesk(window, self.chat, self)
        self.room = ContextWatch(
            window, self.chat, self.turns, self.bridge.engine, self._jobs, services.settings, self
        )
        self.templates = TemplateDesk(self.chat, self.bridge.engine, self._jobs, self)
        standing = Standing(lambda: self.state, self._move, self._show)
        self._selected = SelectionDesk(
            window, self._jobs, self.library, self.planner, standing, self
        )
        self._log = EngineLog(window)
        self._loads = LoadDesk(
            window,
            self.bridge.engine,
            self.planner,
            self.outcome,
            self.chat,
            self._texts,
            self._log,
            standing,
            self,
        )
        self._replies = ReplyDesk(
            window,
            self.bridge.engine,
            self._loads,
            self.chat,
            self.room,
            self.speeds,
            self._texts,
            self._log,
            standing,
            self,
        )
        self.sleep = SleepDesk(
            self._loads,
            self.chat,
            self.turns,
            self.bridge.engine,
            window.status,
            self._jobs,
            services.probe_devices,
            standing,
            self.stop,
            self,
        )
        self._view = SessionView(
            window,
            self._texts,
            self.planner,
            self.tuning,
            self.chat,
            self.turns,
            self._selected,
            self._loads,
            self._replies,
        )
        self.downloads = Downloads(window, services, self)
        self.profiles = ProfileDesk(window, services, self.machine, self)
        self.keys = ChatKeys(window, self.chat, self.turns, self.stop, services.state, self)
        self.state = SessionState.EMPTY
        #: The message that waits for a model that was freed, and its chat.
        self._waiting: tuple[KeptChat, str] | None = None
        self._live = LiveApply(window.placement, self)
        window.placement.set_live(services.state.get("live") is True)
        self._wire()
        self._show()

    def _wire(self) -> None:
        window, services_state = self._window, self._services.state
        self.bridge.events.connect(self._on_events)
        window.paths_dropped.connect(self.library.add_paths)
        window.placement.launch_requested.connect(self.launch)
        window.placement.cancel_requested.connect(self.cancel)
        window.placement.unload_requested.connect(self.unload)
        window.placement.live_toggled.connect(lambda on: services_state.set("live", on))
        self._live.due.connect(self._apply_live)
        self.state_changed.connect(self._apply_live)
        self.state_changed.connect(self.loan.state_changed)
        self.state_changed.connect(self.sleep.state_changed)
        window.chat.send_requested.connect(self.send)
        window.chat.held_back.connect(window.status.set_message)
        window.chat.stop_requested.connect(self.stop)
        self.turns.reply_wanted.connect(self._replies.answer)
        self.chat.changed.connect(self._branch_changed)
        self.chat.left.connect(self.bridge.engine.keep_chat)
        self.chat.deleted.connect(self.bridge.engine.forget_chat)
        self._loads.arrived.connect(self._send_what_waits)
        self._loads.came_to_nothing.connect(self._give_text_back)
        self.library.message.connect(window.status.set_message)
        self.known.best_known.connect(self.speeds.note_tuned)
        self.share.message.connect(window.status.set_message)
        self._replies.replied.connect(self.share.note_reply)
        self.cards.message.connect(window.status.set_message)
        self.downloads.message.connect(window.status.set_message)
        self.downloads.fetched.connect(self.library.show_model)
        window.model_list.menus.get_model.connect(self.downloads.open)
        self.library.actions.loaded_path = lambda: self._loads.path_in_memory
        self.planner.plan_changed.connect(self._show)
        self.planner.plan_changed.connect(self._judge_list)
        self.machine.changed.connect(self._judge_list)
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
        if self._waiting is None and self.outcome.holds_back(facts, plan):
            return
        moves = offered.launch_action is LaunchAction.APPLY
        live_s = self._live.changed_s if self._live.waits else None
        self._live.taken()
        self._window.status.clear_message()
        self.planner.save()
        self._loads.begin(
            facts, plan, keeps_chat=moves, asked_s=time.monotonic() if live_s is None else live_s
        )

    def _load_again(self, before: LoadedModel) -> None:
        """What was lent comes back, as it was and without a question."""
        self._loads.begin(before.facts, before.plan, keeps_chat=False, asked_s=time.monotonic())

    def _apply_taken(self) -> None:
        if self._controls().launch_action is LaunchAction.APPLY:
            self.launch()

    def _apply_live(self, _: object = None) -> None:
        """Apply what the switch Apply live has waiting, as soon as it can be."""
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
            self._loads.cancel()

    def unload(self) -> None:
        """Take the model out of memory; the chat stays."""
        if SessionEvent.UNLOAD in possible_events(self.state):
            self._loads.unload()

    def send(self, text: str) -> None:
        """Ask the loaded model; one that was freed is loaded again first."""
        if not self._controls().send_enabled or not text.strip():
            return
        if self._loads.loaded is None:
            self._waiting = (self.chat.chat, text)
            self._window.chat.set_notice(self._texts.message_waits())
            self.launch()
            return
        self.turns.send(text)

    def stop(self) -> None:
        """End the reply; what is there stays."""
        if SessionEvent.STOP in possible_events(self.state):
            self._move(SessionEvent.STOP)
            self.bridge.engine.stop()

    def on_snapshot(self, snapshot: MachineSnapshot) -> None:
        """The meters' newest word."""
        self.machine.set_snapshot(snapshot)
        self.known.on_snapshot(snapshot)
        self._window.status.set_gpu(*self._texts.gpu(snapshot))

    def set_build(self, text: str) -> None:
        """The line about the installed llama.cpp build."""
        self.outcome.build_text = text
        self._texts.build_text = text
        self._show()

    @property
    def at_work(self) -> tuple[ModelFacts, LaunchPlan] | None:
        """The model that is loaded or being loaded, and its plan."""
        return self._loads.at_work

    def close(self) -> None:
        """Remember the choices, end the engine and the pool. Blocks until they are gone."""
        self.planner.save()
        self._live.close()
        self.sleep.close()
        self.tuning.close()
        self.answers.close()
        self._replies.close()
        self.downloads.close()
        self.library.close()
        self.chat.close()
        self.bridge.close()
        self._jobs.close()
        self.known.close_store()

    def _judge_list(self, _: object = None) -> None:
        """Rows say how they would run here, at the present context."""
        machine, context = self.planner.machine, self.planner.choices().context
        self.library.set_machine(machine, context)
        self.downloads.set_machine(machine, context)

    # The engine's events

    def _on_events(self, events: list[EngineEvent]) -> None:
        for at, event in enumerate(events):
            try:
                self._on_event(event)
            except Exception:
                # One fault must not swallow a load's or a reply's end that came with it.
                self._on_events(events[at + 1 :])
                raise
        self._replies.flush()

    def _on_event(self, event: EngineEvent) -> None:
        if isinstance(event, NativeLog):
            self._log.take(event)
        elif isinstance(event, LoadEvent):
            self._loads.on_event(event)
        elif isinstance(event, ReplyEvent):
            self._replies.on_event(event)
        elif isinstance(event, ChatKept):
            self.sleep.kept(event.request)

    def _branch_changed(self) -> None:
        self._replies.branch_changed()
        self._show()

    def _send_what_waits(self) -> None:
        waiting = self._waiting
        if waiting is not None and waiting[0].id == self.chat.chat.id:
            self._waiting = None
            self.send(waiting[1])
        else:
            self._give_text_back()

    def _give_text_back(self) -> None:
        """The message that waited for the model goes back to where it was written."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            if self._loads.loaded is None:
                self._window.chat.set_notice("")
            self.chat.give_back(*waiting)

    def _idle_for_long(self) -> None:
        if self.state is SessionState.READY:
            self.unload()
            minutes = self._services.settings.get(keys.IDLE_UNLOAD_MINUTES)
            self._window.status.set_message(self._texts.idle_unloaded(minutes), "info")

    # What is shown

    def _move(self, event: SessionEvent) -> None:
        before = self.state
        self.state = next_state(self.state, event, self._selected.selection)
        if self.state is not before:
            self.state_changed.emit(self.state)
        self._show()

    def _controls(self) -> Controls:
        loaded, plan, facts = self._loads.loaded, self.planner.plan, self.planner.facts
        same = loaded is not None and facts is not None and loaded.facts.path == facts.path
        return controls(
            self.state,
            self._selected.selection,
            same_model=same,
            settings_differ=loaded is not None and plan is not None and _differ(loaded.plan, plan),
            reload_on_send=facts is not None
            and plan is not None
            and facts.path == self._loads.freed,
        )

    def _show(self) -> None:
        self._view.show(self.state, self._controls())


def _differ(loaded: LaunchPlan, now: LaunchPlan) -> bool:
    """Whether applying ``now`` would change what runs, or what the slider promised."""
    return loaded.choices != now.choices
