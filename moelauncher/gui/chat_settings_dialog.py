"""What is set for the chat that is shown: system prompt, how replies are drawn, their end.

An empty field means: as usual. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.chat_settings import NUMBERS, read_typed
from moelauncher.core.errors import LauncherError
from moelauncher.core.settings import Settings
from moelauncher.core.translate import tr
from moelauncher.gui import theme as look
from moelauncher.gui.pane import plain_label


class ChatSettingsDialog(QDialog):
    """After ``exec()`` was accepted, ``system`` and ``values`` are what the user wants."""

    def __init__(
        self,
        system: str,
        values: Mapping[str, object],
        settings: Settings,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("chatSettings")
        self.setWindowTitle(self.tr("Settings of this chat"))
        self.setMinimumWidth(480)
        self.system = system
        self.values: dict[str, object] = dict(values)
        self.prompt = QPlainTextEdit(system, self)
        self.prompt.setObjectName("systemPrompt")
        self.prompt.setTabChangesFocus(True)
        self.prompt.setMinimumHeight(96)
        self.prompt.setToolTip(self.tr("What the model is told before this chat."))
        self.numbers: dict[str, QLineEdit] = {}
        form = QFormLayout()
        form.setSpacing(look.GRID)
        form.addRow(self.tr("System prompt"), self.prompt)
        for name, setting, _ in NUMBERS:
            field = QLineEdit(self)
            value, usual = values.get(name), settings.get(setting)
            field.setText("" if value is None else f"{value:g}" if _real(value) else str(value))
            field.setPlaceholderText(
                self.tr("as usual") if usual is None else self.tr("as usual: {n}").format(n=usual)
            )
            field.setToolTip(tr(setting.help))
            field.setAccessibleName(tr(setting.label))
            self.numbers[name] = field
            form.addRow(tr(setting.label), field)
        stop = values.get("stop")
        lines = [str(s).replace("\n", "\\n") for s in stop] if isinstance(stop, list) else []
        self.stop = QPlainTextEdit("\n".join(lines), self)
        self.stop.setTabChangesFocus(True)
        self.stop.setMaximumHeight(64)
        self.stop.setToolTip(
            self.tr("A reply ends before any of these texts, one a line; \\n is a line break.")
        )
        form.addRow(self.tr("Stop strings"), self.stop)
        for row in range(form.rowCount()):
            item = form.itemAt(row, QFormLayout.ItemRole.LabelRole)
            label = item.widget() if item is not None else None
            if isinstance(label, QLabel):
                look.set_tone(label, "muted")
        self.problem = plain_label("", "bad", self)
        self.problem.setWordWrap(True)
        self.problem.hide()
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel, self
        )
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(
            look.PANE_MARGIN, look.PANE_MARGIN, look.PANE_MARGIN, look.PANE_MARGIN
        )
        column.setSpacing(look.PANE_MARGIN)
        column.addLayout(form)
        column.addWidget(self.problem)
        column.addWidget(buttons)

    def accept(self) -> None:
        """Take what was typed, or say what is wrong with it."""
        texts = {name: field.text() for name, field in self.numbers.items()}
        try:
            self.values = read_typed(texts, self.stop.toPlainText())
        except LauncherError as error:
            self.problem.setText(error.sentence)
            self.problem.show()
            return
        self.system = self.prompt.toPlainText().strip()
        super().accept()


def _real(value: object) -> bool:
    return isinstance(value, float)
