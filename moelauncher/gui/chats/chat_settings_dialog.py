"""What is set for the chat that is shown: system prompt, how replies are drawn, their end.

An empty field means: as usual. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.chats.chat_library import PRESETS, PROMPTS, ChatLibrary
from moelauncher.core.chats.chat_settings import NUMBERS, read_typed
from moelauncher.core.chats.sampling_presets import (
    OWN,
    SAMPLING_NAMES,
    Preset,
    all_presets,
    preset_in,
    sampling_of,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.program.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.controls.named_choice import NamedChoice
from moelauncher.gui.controls.ok_cancel import ok_cancel
from moelauncher.gui.controls.pane import plain_label


class ChatSettingsDialog(QDialog):
    """After it was accepted, ``system`` and ``values`` are what the user wants.

    Signals:
        template_requested(): show the template of the model.
    """

    template_requested = Signal()

    def __init__(
        self,
        system: str,
        values: Mapping[str, object],
        settings: Settings,
        library: ChatLibrary,
        metadata: Mapping[str, object],
        parent: QWidget | None = None,
    ) -> None:
        """``metadata``: that of the model's file, for its own recommendation; empty: no model."""
        super().__init__(parent)
        self.setObjectName("chatSettings")
        self.setWindowTitle(self.tr("Settings of this chat"))
        self.setMinimumWidth(520)
        self.system = system
        self.values: dict[str, object] = dict(values)
        self._library, self._metadata = library, metadata
        self._settings = settings
        self.numbers: dict[str, QLineEdit] = {}
        self._filling = False
        form = QFormLayout()
        form.setSpacing(look.GRID)
        self._add_prompt(form)
        self._add_presets(form)
        self._add_numbers(form, values)
        self._add_stop(form, values)
        for row in range(form.rowCount()):
            item = form.itemAt(row, QFormLayout.ItemRole.LabelRole)
            label = item.widget() if item is not None else None
            if isinstance(label, QLabel):
                look.set_tone(label, "muted")
                # As tall as the fields, so that both texts stand on one line.
                label.setFixedHeight(look.CONTROL_HEIGHT)
        self.problem = plain_label("", "bad", self)
        self.problem.setWordWrap(True)
        self.problem.hide()
        buttons = ok_cancel(self)
        self.template = QPushButton(self.tr("Chat template…"), self)
        self.template.setObjectName("templateButton")
        self.template.setToolTip(
            self.tr("How turns become the text that the model reads; for this model.")
        )
        self.template.setEnabled(bool(metadata))
        self.template.setAutoDefault(False)
        self.template.clicked.connect(self.template_requested)
        # The role that stands apart from OK and Cancel; what it does is its own affair.
        buttons.addButton(self.template, QDialogButtonBox.ButtonRole.ResetRole)
        column = QVBoxLayout(self)
        column.setContentsMargins(
            look.PANE_MARGIN, look.PANE_MARGIN, look.PANE_MARGIN, look.PANE_MARGIN
        )
        column.setSpacing(look.PANE_MARGIN)
        for field in (self.prompts, self.presets, *self.numbers.values(), self.stop):
            form.labelForField(field).setToolTip(field.toolTip())
        column.addLayout(form)
        column.addWidget(self.problem)
        column.addWidget(buttons)
        self._show_prompts()
        self._show_presets()

    def accept(self) -> None:
        """Take what was typed, or say what is wrong with it."""
        try:
            values = self._read()
        except LauncherError as error:
            self._tell(error)
            return
        found = preset_in({**values, "preset": self.presets.key}, self._presets())
        if found is not None:
            values["preset"] = found.key
        self.values = values
        self.system = self.prompt.toPlainText().strip()
        super().accept()

    # Parts

    def _add_prompt(self, form: QFormLayout) -> None:
        self.prompt = QPlainTextEdit(self.system, self)
        self.prompts = NamedChoice(
            "promptCombo",
            self.tr("Saved system prompt"),
            self.tr("Saved prompts"),
            self.tr("Name of this system prompt"),
            self,
        )
        self.prompts.setToolTip(self.tr("System prompts that you saved, for all chats."))
        self.prompts.chosen.connect(self._take_prompt)
        self.prompts.save_requested.connect(
            lambda name: self._keep(PROMPTS, name, self.prompt.toPlainText().strip() or None)
        )
        self.prompts.delete_requested.connect(lambda name: self._keep(PROMPTS, name, None))
        self.prompt.setObjectName("systemPrompt")
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMinimumHeight(80)
        self.prompt.setToolTip(self.tr("What the model is told before this chat."))
        self.prompt.setAccessibleName(self.tr("System prompt"))
        self.prompt.textChanged.connect(self._show_prompts)
        form.addRow(self.tr("System prompt"), self.prompts)
        form.addRow("", self.prompt)

    def _add_presets(self, form: QFormLayout) -> None:
        self.presets = NamedChoice(
            "presetCombo",
            self.tr("Preset"),
            self.tr("usual"),
            self.tr("Name of this preset"),
            self,
        )
        self.presets.setToolTip(
            self.tr("Fills in the five numbers below; change them and save them as your own.")
        )
        self.presets.chosen.connect(self._take_preset)
        self.presets.save_requested.connect(self._save_preset)
        self.presets.delete_requested.connect(
            lambda key: self._keep(PRESETS, key.removeprefix(OWN), None)
        )
        form.addRow(self.tr("Preset"), self.presets)

    def _add_numbers(self, form: QFormLayout, values: Mapping[str, object]) -> None:
        for name, setting, _ in NUMBERS:
            field = QLineEdit(self)
            usual = self._settings.get(setting)
            field.setText(_shown(values.get(name)))
            field.setPlaceholderText(self._usual_text(name, usual))
            field.setToolTip(tr(setting.help))
            field.setAccessibleName(tr(setting.label))
            if name in SAMPLING_NAMES:
                field.textChanged.connect(self._show_presets)
            self.numbers[name] = field
            form.addRow(tr(setting.label), field)

    def _usual_text(self, name: str, usual: object) -> str:
        """What an empty field stands for."""
        if usual is not None:
            return self.tr("as usual: {n}").format(n=usual)
        return {
            "seed": self.tr("as usual: another each time"),
            "max_tokens": self.tr("as usual: until it is complete"),
        }.get(name, self.tr("as usual"))

    def _add_stop(self, form: QFormLayout, values: Mapping[str, object]) -> None:
        stop = values.get("stop")
        lines = [str(s).replace("\n", "\\n") for s in stop] if isinstance(stop, list) else []
        self.stop = QPlainTextEdit("\n".join(lines), self)
        self.stop.setTabChangesFocus(True)
        self.stop.setMaximumHeight(64)
        self.stop.setToolTip(
            self.tr("A reply ends before any of these texts, one a line; \\n is a line break.")
        )
        form.addRow(self.tr("Stop strings"), self.stop)

    def _presets(self) -> tuple[Preset, ...]:
        return all_presets(self._metadata, self._library)

    def _read(self) -> dict[str, object]:
        texts = {name: field.text() for name, field in self.numbers.items()}
        return read_typed(texts, self.stop.toPlainText())

    def _tell(self, error: LauncherError) -> None:
        self.problem.setText(error.sentence)
        self.problem.show()

    # The library

    def _take_prompt(self, name: str) -> None:
        if name:
            self.prompt.setPlainText(self._library.text(PROMPTS, name))

    def _take_preset(self, key: str) -> None:
        preset = next((p for p in self._presets() if p.key == key), None)
        self._filling = True
        for name in SAMPLING_NAMES:
            self.numbers[name].setText(_shown(preset.values.get(name)) if preset else "")
        self._filling = False
        self._show_presets()

    def _save_preset(self, name: str) -> None:
        try:
            values = sampling_of(self._read())
        except LauncherError as error:
            self._tell(error)
            return
        if not values:
            self._tell(LauncherError(self.tr("There are no numbers to save yet.")))
            return
        self._keep(PRESETS, name, values)
        self._take_preset(OWN + name)

    def _keep(self, table: str, name: str, value: object) -> None:
        self.problem.hide()
        try:
            self._library.put(table, name, value)
        except LauncherError as error:
            self._tell(error)
        self._show_prompts()
        self._show_presets()

    def _show_prompts(self) -> None:
        names = self._library.names(PROMPTS)
        text = self.prompt.toPlainText().strip()
        now = next((n for n in names if text and self._library.text(PROMPTS, n) == text), "")
        self.prompts.set_choices([(name, name, True) for name in names], now)
        self.prompts.save.setEnabled(bool(text))

    def _show_presets(self) -> None:
        if self._filling or len(self.numbers) < len(NUMBERS):
            return
        presets = self._presets()
        texts = {name: self.numbers[name].text() for name in SAMPLING_NAMES}
        try:
            typed = read_typed(texts, "")
        except LauncherError:
            typed = {}
        wanted = self.presets.key or self.values.get("preset")
        now = preset_in({**typed, "preset": wanted}, presets)
        choices = [(preset.key, preset.label, preset.is_own) for preset in presets]
        self.presets.set_choices(choices, now.key if now else "")
        own = any(text.strip() for text in texts.values()) and now is None
        self.presets.combo.setItemText(0, self.tr("own numbers") if own else self.tr("usual"))
        self.presets.save.setEnabled(bool(typed))


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
