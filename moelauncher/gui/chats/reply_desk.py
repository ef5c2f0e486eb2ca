"""A reply as it comes: its events become text in the chat, the live speed and the context.

In: the chat's request and the engine's answers to it. Out: the chat's text once a frame, the
speed curve, how full the context is, and moves of the session's state. GUI thread only.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer, Signal

from moelauncher.core.engine_protocol import (
    LEAST_TOLD_TOKENS,
    Engine,
    Finished,
    GenerateFailed,
    GenerateRequest,
    GenerationStats,
    PromptProgress,
    TokenEvent,
)
from moelauncher.core.session_state import SessionEvent, SessionState, possible_events
from moelauncher.core.speed.prompt_pace import PromptPace
from moelauncher.core.speed.token_rate import TokenRate
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.context_watch import ContextWatch
from moelauncher.gui.chats.reply_writer import ReplyWriter
from moelauncher.gui.engine_log import EngineLog
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.memory.load_desk import LoadDesk, LoadedModel
from moelauncher.gui.session_texts import SessionTexts
from moelauncher.gui.speed.best_speeds import BestSpeeds
from moelauncher.gui.standing import Standing

#: The live rate is sampled this often.
RATE_MS = 100

#: The events that this desk takes.
ReplyEvent = PromptProgress | TokenEvent | Finished | GenerateFailed


class ReplyDesk(QObject):
    """The reply in progress, and the numbers of the last one.

    Signals:
        replied(object, object): a reply ended that one placement wrote from its first token to
            its last: the LoadedModel, the GenerationStats.
    """

    replied = Signal(object, object)

    def __init__(
        self,
        window: MainWindow,
        engine: Engine,
        loads: LoadDesk,
        chat: ChatSession,
        room: ContextWatch,
        speeds: BestSpeeds,
        texts: SessionTexts,
        log: EngineLog,
        standing: Standing,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._engine = engine
        self._loads = loads
        self._chat = chat
        self._writer = ReplyWriter(window, chat, self)
        self._room = room
        self._speeds = speeds
        self._texts = texts
        self._log = log
        self._standing = standing
        self._number = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._rate = TokenRate()
        #: Since when the prompt is read, or what a move lost is read again.
        self._read_from_s: float | None = None
        self._written = False  # whether the reply's first token has come
        self._prompt_tokens = 0
        self._pace = PromptPace()
        self._paced: LoadedModel | None = None  # whose prompts the pace is of
        self._replying = False
        self._reply_used: int | None = None  # context taken by the reply that goes on
        self._branch_used: int | None = None  # and by the branch in view, where it is another
        self._last_stats: GenerationStats | None = None
        self._moved = False  # whether this reply was written in more than one place
        self._rate_clock = QTimer(self)
        self._rate_clock.setInterval(RATE_MS)
        self._rate_clock.timeout.connect(self._sample_rate)
        loads.chat_left.connect(self._chat_left)
        loads.reply_goes_on.connect(self._goes_on)

    def answer(self, request: GenerateRequest) -> None:
        """Let the loaded model answer; the chat has opened the reply."""
        self._writer.begin(request.continues)
        self._rate.begin()
        self._read_from_s, self._written = time.monotonic(), False
        self._last_stats = None
        self._moved = False
        if self._loads.loaded is not self._paced:
            self._pace.forget()
            self._paced = self._loads.loaded
        self._replying = True
        self._reply_used = self._branch_used
        self._standing.move(SessionEvent.SEND)
        self._rate_clock.start()
        self._number = self._engine.generate(request)

    def branch_changed(self) -> None:
        """The numbers of the visible branch are those of its last reply."""
        reply = self._chat.conversation.last_reply
        self._branch_used = reply.stats.context_used if reply and reply.stats else None
        self._show_progress()

    def show_context(self) -> None:
        """How full the context of the loaded model is."""
        in_view = self._replying and self._chat.elsewhere is None
        used = self._reply_used if in_view else self._branch_used
        total = self._loads.loaded.report.n_ctx if self._loads.loaded else None
        self._window.chat.set_context(used, total)
        self._room.set_total(total)
        self._window.status.set_context(self._texts.context(used, total))

    def close(self) -> None:
        """Sample nothing any more; a reply that goes on stays as it is."""
        self._rate_clock.stop()
        self._writer.cut()

    # What the engine says

    def on_event(self, event: ReplyEvent) -> None:
        """Show it; answers to earlier requests are dropped. Text waits for :meth:`flush`."""
        if isinstance(event, (Finished, GenerateFailed)):
            # What came before the end in this frame belongs to the reply.
            self.flush()
        if event.request != self._number:
            return
        if isinstance(event, TokenEvent):
            self._token(event)
            self._text.append(event.text)
            self._reasoning.append(event.reasoning)
        elif isinstance(event, PromptProgress):
            self._prompt_progressed(event)
        elif isinstance(event, Finished):
            self._ended(event.stats)
        else:
            self._closed()
            self._writer.fail(event.error)
            self._log.add("error", event.error.details)

    def flush(self) -> None:
        """Give the chat what has come in this frame."""
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        self._text.clear()
        self._reasoning.clear()
        self._writer.append(text, reasoning)

    def _prompt_progressed(self, event: PromptProgress) -> None:
        told = event.done >= LEAST_TOLD_TOKENS and event.elapsed_s > 0
        rate = event.done / event.elapsed_s if told else None
        self._pace.told(event.done, event.total, event.elapsed_s, time.monotonic())
        self._show_progress()
        self._window.status.set_prompt(self._texts.prompt(event.total, rate))
        self._reply_used = event.cached + event.done
        now_s = time.monotonic()
        if self._written:  # what a move lost is read again, reply and all
            self._read_from_s = self._read_from_s or now_s
        else:
            self._prompt_tokens = self._reply_used
            if SessionEvent.PROMPT_GOES_ON in possible_events(self._standing.state()):
                self._standing.move(SessionEvent.PROMPT_GOES_ON)
            waited_s = self._loads.timing.token(now_s)
            if waited_s is not None and self._loads.loaded is not None:
                text = self._texts.moved_in_prompt(self._loads.loaded.report, waited_s)
                self._window.status.set_message(text, "good")
        self._shade_prompt(now_s)
        self.show_context()

    def _show_progress(self) -> None:
        """How far the prompt is read, in the chat that asked."""
        reading = self._pace.reading(time.monotonic())
        if reading is not None and self._chat.elsewhere is None:
            self._window.chat.set_prompt_progress(reading)

    def _token(self, event: TokenEvent) -> None:
        self._shade_prompt(event.time_s)
        self._read_from_s = None
        self._pace.stop()
        self._written = True
        waited_s = self._loads.timing.token(event.time_s)
        if waited_s is not None and self._loads.loaded is not None:
            report = self._loads.loaded.report
            self._window.status.set_message(self._texts.moved(report, waited_s), "good")
        if event.n_tokens == 1 and SessionEvent.FIRST_TOKEN in possible_events(
            self._standing.state()
        ):
            self._standing.move(SessionEvent.FIRST_TOKEN)
        self._rate.add(event.time_s)
        self._reply_used = self._prompt_tokens + event.n_tokens

    def _ended(self, stats: GenerationStats) -> None:
        loaded = self._loads.loaded
        placement = self._texts.placement(loaded.plan) if loaded else ""
        self._last_stats = stats
        if loaded is not None:
            self._speeds.note_reply(loaded.facts, loaded.plan, stats)
            if not self._moved:
                self._pace.learn(stats.prompt_tokens - stats.cached_tokens, stats.prompt_tok_s)
                self.replied.emit(loaded, stats)
        self._reply_used = stats.context_used
        self._window.status.set_prompt(
            self._texts.prompt(stats.prompt_tokens, stats.told_prompt_tok_s)
        )
        self._closed()
        self._writer.finish(stats, placement)
        if stats.finish_reason == "context_full":
            self._window.status.set_message(self._texts.context_full(), "warning")

    def _closed(self) -> None:
        self._sample_rate()
        self._rate_clock.stop()
        self._read_from_s = None
        self._pace.stop()
        self._replying = False
        now = time.monotonic()
        self._window.speed.add_rate(now, None)
        average = self._last_stats.tok_s if self._last_stats else None
        self._window.speed.set_summary(average, average)
        if self._standing.state() is SessionState.STOPPING and self._loads.goes_on:
            return  # a move was stopped with it, and its end is still to come
        if SessionEvent.FINISHED in possible_events(self._standing.state()):
            self._standing.move(SessionEvent.FINISHED)

    # What the load desk says

    def _chat_left(self) -> None:
        self._reply_used = self._branch_used = None

    def _goes_on(self) -> None:
        # Its rate is that of the new place; the way there is a gap in the curve.
        self._window.speed.add_rate(time.monotonic(), None)
        self._rate.begin()
        self._moved = True

    # Speed

    def _sample_rate(self) -> None:
        now = time.monotonic()
        self._shade_prompt(now)
        self._show_progress()
        rate = self._rate.rate(now)
        known = None if rate != rate else rate  # NaN: nothing to say yet
        if self._standing.state() in (SessionState.GENERATING, SessionState.STOPPING):
            self._window.speed.add_rate(now, known)
            average = self._rate.average()
            self._window.speed.set_summary(known, None if average != average else average)
            self._window.status.set_state(*self._texts.state(self._standing.state(), known))
            self.show_context()

    def _shade_prompt(self, until_s: float) -> None:
        if self._read_from_s is not None:
            self._window.speed.shade_prompt(self._read_from_s, until_s)
