"""Says that a reply goes on in another chat, and leads there. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.controls.elided_label import ElidedLabel


class ReplyElsewhere(QWidget):
    """Hidden until :meth:`set_title` names a chat.

    Signals:
        show_requested(): show the chat that is being answered.
        stop_requested(): end the reply; what is there stays.
    """

    show_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("replyElsewhere")
        self.text = ElidedLabel("", self)
        self.text.setFont(look.font("small"))
        look.set_tone(self.text, "muted")
        self.show_chat = self._button("showAnsweredChatButton", self.tr("Show"))
        self.show_chat.clicked.connect(self.show_requested)
        self.stop = self._button("stopElsewhereButton", self.tr("Stop"))
        self.stop.clicked.connect(self.stop_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, look.HALF, 0, look.HALF)
        row.setSpacing(look.GRID)
        row.addWidget(self.text, 1)
        row.addWidget(self.show_chat)
        row.addWidget(self.stop)
        self.hide()

    def set_title(self, title: str, can_stop: bool) -> None:
        """The chat that is being answered; empty hides the line."""
        text = self.tr("A reply is being written in “{title}”.")
        self.text.set_text(text.format(title=title) if title else "")
        self.show_chat.setAccessibleName(self.tr("Show “{title}”").format(title=title))
        self.stop.setAccessibleName(self.tr("Stop the reply in “{title}”").format(title=title))
        self.stop.setEnabled(can_stop)
        self.setVisible(bool(title))

    def _button(self, name: str, text: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(name)
        button.setProperty("kind", "chip")
        return button
