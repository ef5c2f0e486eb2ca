"""What is set for chats: shown by the chip, edited in the dialog, remembered for each model.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QObject, Signal

from moelauncher.core.chats.chat_library import MODELS, TEMPLATES, ChatLibrary
from moelauncher.core.chats.chat_settings import ReplySettings, reply_settings
from moelauncher.core.chats.sampling_presets import (
    all_presets,
    preset_in,
    preset_label,
    sampling_of,
    settings_for_model,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.program import settings as keys
from moelauncher.core.program.settings import Settings
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog
from moelauncher.gui.main_window import MainWindow

#: A seed is for repeating one reply: kept for a model, all its chats would sound alike.
_NOT_FOR_THE_MODEL = ("seed",)


class ChatSettingsDesk(QObject):
    """Between the chip, the dialog and the file of what was last set for a model.

    Signals:
        template_requested(object): show the model's template; its parent is this dialog.
        template_changed(): prompts are another text from now on: another model, or template.
    """

    template_requested = Signal(object)
    template_changed = Signal()

    def __init__(
        self,
        window: MainWindow,
        settings: Settings,
        library: ChatLibrary,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._settings = settings
        self._library = library
        self.path = ""
        self.metadata: Mapping[str, object] = MappingProxyType({})

    def set_model(self, path: Path | None, metadata: Mapping[str, object]) -> None:
        """The model that answers now; None: nobody, and the chat keeps what it has."""
        self.path = str(path) if path is not None else ""
        self.metadata = metadata
        self.template_changed.emit()

    def usual(self) -> dict[str, object]:
        """What a new chat with this model begins with."""
        if not self.path:
            return {}
        return settings_for_model(self.path, self.metadata, self._library)

    def are_usual(self, settings: Mapping[str, object]) -> bool:
        """Whether a chat has nothing but what it began with."""
        return dict(settings) in ({}, self.usual())

    def for_reply(self, settings: Mapping[str, object]) -> ReplySettings:
        """How a reply of this chat is drawn, where it says nothing as the program's settings do."""
        usual = self._settings
        return reply_settings(usual.sampling(), usual.get(keys.MAX_TOKENS), settings)

    def show(self, settings: Mapping[str, object]) -> None:
        """Let the chip say how replies of this chat are drawn."""
        presets = all_presets(self.metadata, self._library)
        key: str | None = ""
        if sampling_of(settings):
            found = preset_in(settings, presets)
            key = found.key if found is not None else None
        self._window.chat.composer.preset.set_presets(presets, preset_label(settings, presets), key)

    def remember(self, settings: Mapping[str, object]) -> None:
        """New chats with this model begin with these settings."""
        if not self.path:
            return
        kept = {k: v for k, v in settings.items() if k not in _NOT_FOR_THE_MODEL}
        self.put(MODELS, self.path, kept)

    def template(self) -> str | None:
        """What stands in for the model's own template; None: nothing does."""
        return self._library.text(TEMPLATES, self.path) or None if self.path else None

    @property
    def own_template(self) -> str:
        """The template in the model's file; empty where it has none."""
        found = self.metadata.get("tokenizer.chat_template")
        return found if isinstance(found, str) else ""

    def use_template(self, text: str | None) -> None:
        """Let ``text`` stand in for the model's template; None: back to its own."""
        if self.path:
            own = not text or not text.strip() or text == self.own_template
            self.put(TEMPLATES, self.path, None if own else text)
            self.template_changed.emit()

    def put(self, table: str, name: str, value: object) -> None:
        """Keep something in the library; what fails is said in the status line."""
        try:
            self._library.put(table, name, value)
        except LauncherError as error:
            self._window.status.set_message(error.sentence, "error")

    def edit(
        self,
        system: str,
        values: Mapping[str, object],
        done: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        """Ask; ``done`` gets the system prompt and the settings where the user says so."""
        dialog = ChatSettingsDialog(
            system, values, self._settings, self._library, self.metadata, self._window
        )
        dialog.accepted.connect(lambda: done(dialog.system, dialog.values))
        # What was saved or deleted in it holds also where it is cancelled.
        dialog.rejected.connect(lambda: self.show(values))
        dialog.template_requested.connect(lambda: self.template_requested.emit(dialog))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
