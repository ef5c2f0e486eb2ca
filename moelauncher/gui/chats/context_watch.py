"""Counts what the next message would take of the context, while it is being written.

The model's own tokenizer counts, on a pool thread, a moment after the last key. GUI thread
only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, QTimer

from moelauncher.core.chats.quoted_file import quote_file
from moelauncher.core.engine_protocol import Engine
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.context_room import nearly_full, oldest_to_leave_out
from moelauncher.core.program import settings as keys
from moelauncher.core.program.settings import Settings
from moelauncher.core.text_cleaning import display_name
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.turn_desk import TurnDesk
from moelauncher.gui.jobs import JobRunner, Report
from moelauncher.gui.main_window import MainWindow

REST_MS = 250


@dataclass(frozen=True)
class _Quoted:
    """A file's text as it goes into the message. ``n_tokens``: None without a model."""

    name: str
    text: str
    n_tokens: int | None


class ContextWatch(QObject):
    """Tells the composer how full the context would be, and offers ways out in time."""

    def __init__(
        self,
        window: MainWindow,
        chat: ChatSession,
        turns: TurnDesk,
        engine: Engine,
        jobs: JobRunner,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._chat = chat
        self._turns = turns
        self._engine = engine
        self._jobs = jobs
        self._settings = settings
        self._total: int | None = None
        self._n_prompt = 0
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._count)
        window.chat.composer.field.textChanged.connect(self._rest.start)
        chat.changed.connect(self._rest.start)
        chat.settings.template_changed.connect(self._rest.start)
        turns.reply_wanted.connect(self._forget)
        window.chat.files_dropped.connect(self._quote)
        offer = window.chat.offer
        offer.leave_out_requested.connect(self._leave_out)
        offer.enlarge_requested.connect(self._enlarge)
        offer.new_chat_requested.connect(chat.new_chat)

    def set_total(self, n_ctx: int | None) -> None:
        """The tokens that the loaded context holds; None: nothing is loaded."""
        if n_ctx != self._total:
            self._total = n_ctx
            self._forget()
            if n_ctx is not None:
                self._rest.start()

    def _forget(self) -> None:
        self._rest.stop()
        self._jobs.cancel("context")
        self._window.chat.composer.set_draft_use(None)
        self._window.chat.offer.hide()

    def _count(self) -> None:
        if self._total is None or self._chat.conversation.streaming:
            return
        draft = self._window.chat.composer.text
        if not draft.strip() and not self._chat.conversation.left_out:
            self._show_last()
            return
        messages = self._turns.prospect(draft).messages()
        if not any(message.role == "user" for message in messages):
            self._forget()
            return
        values = self._chat.thinking.values()
        template = self._chat.settings.template()
        self._jobs.start(
            "context",
            lambda report, cancelled: self._engine.count_prompt(messages, values, template),
            self._counted,
            lambda error: None,  # the template refuses: the reply itself will say why
        )

    def _show_last(self) -> None:
        """Nothing is being written: what the last reply left in the context says it all."""
        reply = self._chat.conversation.last_reply
        self._jobs.cancel("context")
        self._window.chat.composer.set_draft_use(None)
        self._judge(reply.stats.context_used if reply and reply.stats else 0)

    def _counted(self, n_prompt: object) -> None:
        if self._total is not None and isinstance(n_prompt, int):
            self._window.chat.composer.set_draft_use(n_prompt)
            self._judge(n_prompt)

    def _judge(self, n_prompt: int) -> None:
        self._n_prompt = n_prompt
        offer = self._window.chat.offer
        if self._total is not None and nearly_full(n_prompt, self._total):
            offer.offer(n_prompt, self._total, len(self._turns.given_turns()) > 1)
        else:
            offer.hide()

    def _leave_out(self) -> None:
        total, n_prompt = self._total, self._n_prompt
        if total is None:
            return
        turns = self._turns.given_turns()
        keep = self._settings.get(keys.KEEP_FIRST_TURNS)

        def choose(report: object, cancelled: object) -> object:
            costs = [
                (key, self._engine.count_tokens(turn.text) or 0, turn.role == "user")
                for key, turn in turns
            ]
            # What is being written is the last question.
            costs.append((0, 0, True))
            return oldest_to_leave_out(costs, n_prompt, total, keep)

        self._jobs.start("context", choose, self._chosen, self._failed)

    def _chosen(self, left_out: object) -> None:
        if isinstance(left_out, tuple) and left_out:
            self._turns.leave_out(left_out)
        else:
            text = self.tr("There is nothing to leave out: take a larger context.")
            self._window.status.set_message(text, "warning")

    def _failed(self, error: LauncherError) -> None:
        self._window.status.set_message(error.sentence, "error")

    def _quote(self, paths: list[Path]) -> None:
        """Put text files into the message, and say how long each is."""

        def read(report: Report, cancelled: object) -> object:
            for path in paths:
                try:
                    text = quote_file(path)
                    report(_Quoted(display_name(path.name), text, self._engine.count_tokens(text)))
                except LauncherError as error:
                    report(error)
            return None

        self._jobs.start("quote", read, lambda _: None, self._failed, self._quoted)

    def _quoted(self, answer: object) -> None:
        if isinstance(answer, LauncherError):
            self._failed(answer)
            return
        if not isinstance(answer, _Quoted):
            return
        self._window.chat.composer.add_text(answer.text)
        if answer.n_tokens is not None:
            told = self.tr("{name} was quoted: {n} tokens.").format(
                name=answer.name, n=f"{answer.n_tokens:,}"
            )
            self._window.status.set_message(told, "info")

    def _enlarge(self) -> None:
        combo = self._window.placement.context
        wanted = max(2 * (self._total or 0), self._n_prompt * 5 // 4)
        if not combo.choose_at_least(wanted):
            text = self.tr("The model was trained for no larger context.")
            self._window.status.set_message(text, "warning")
            return
        text = self.tr("Memory shows what a context of {n} tokens takes: press Apply to have it.")
        self._window.status.set_message(text.format(n=f"{combo.size_tokens:,}"), "info")
