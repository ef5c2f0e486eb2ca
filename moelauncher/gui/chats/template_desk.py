"""Opens the template of the loaded model, renders what it makes of the chat, finds its switches.

A template is a stranger's program, so it runs in a pool job. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from moelauncher.core.engine_protocol import ChatMessage, Engine
from moelauncher.core.errors import LauncherError
from moelauncher.gui.chats.chat_session import ChatSession
from moelauncher.gui.chats.template_dialog import TemplateDialog
from moelauncher.gui.jobs import JobRunner


class TemplateDesk(QObject):
    """Between the dialog, the engine that renders, and what is kept for the model."""

    def __init__(
        self, chat: ChatSession, engine: Engine, jobs: JobRunner, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._chat = chat
        self._engine = engine
        self._jobs = jobs
        self._dialog: TemplateDialog | None = None
        chat.settings.template_requested.connect(self.open)
        chat.settings.template_changed.connect(self._find_switches)

    def open(self, above: object) -> None:
        """Show the template over ``above``."""
        settings = self._chat.settings
        dialog = self._dialog = TemplateDialog(
            settings.own_template,
            settings.template(),
            above if isinstance(above, QWidget) else None,
        )
        dialog.preview_wanted.connect(self._render)
        dialog.accepted.connect(lambda: settings.use_template(dialog.template))
        dialog.finished.connect(self._closed)
        dialog.open()

    def _find_switches(self) -> None:
        """A template that stands in for the model's may let one switch other things."""
        stand_in, thinking = self._chat.settings.template(), self._chat.thinking
        if stand_in is None:
            self._jobs.cancel("switches")
            thinking.set_stand_in(None)
            return
        self._jobs.start(
            "switches",
            lambda report, cancelled: self._engine.find_switches(stand_in),
            lambda found: thinking.set_stand_in(found if isinstance(found, tuple) else ()),
            lambda error: thinking.set_stand_in(()),
        )

    def _render(self, template: object) -> None:
        messages = self._chat.conversation.messages()
        if not any(message.role == "user" for message in messages):
            messages = (*messages, ChatMessage("user", self.tr("Hello!")))
        values = self._chat.thinking.values()
        stand_in = template if isinstance(template, str) else None
        self._jobs.start(
            "template",
            lambda report, cancelled: self._engine.render_prompt(messages, values, stand_in),
            self._rendered,
            self._refused,
        )

    def _rendered(self, text: object) -> None:
        if self._dialog is not None:
            self._dialog.show_preview(text if isinstance(text, str) else None)

    def _refused(self, error: LauncherError) -> None:
        if self._dialog is not None:
            self._dialog.show_problem(error)

    def _closed(self) -> None:
        self._jobs.cancel("template")
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
