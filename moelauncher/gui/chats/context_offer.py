"""Says that the context is nearly full before it is, and offers ways out. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from moelauncher.gui import theme as look


class ContextOffer(QWidget):
    """Hidden until :meth:`offer`.

    Signals:
        leave_out_requested(): give the model the oldest turns no longer.
        enlarge_requested(): take a larger context.
        new_chat_requested(): begin anew.
    """

    leave_out_requested = Signal()
    enlarge_requested = Signal()
    new_chat_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("contextOffer")
        self.text = QLabel(self)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setWordWrap(True)
        self.text.setFont(look.font("small", figures=True))
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        look.set_tone(self.text, "warn")
        row = QHBoxLayout()
        row.setSpacing(look.GRID)
        self.leave_out = self._button(self.tr("Leave out oldest"), self.leave_out_requested)
        self.leave_out.setToolTip(
            self.tr("The oldest turns stay in the chat, but the model is given them no longer.")
        )
        self.enlarge = self._button(self.tr("Larger context"), self.enlarge_requested)
        self.enlarge.setToolTip(
            self.tr("Choose twice the context; the forecast shows what it takes before you apply.")
        )
        self.new_chat = self._button(self.tr("New chat"), self.new_chat_requested)
        for button in (self.leave_out, self.enlarge, self.new_chat):
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, look.HALF, 0, look.HALF)
        column.setSpacing(look.HALF)
        column.addWidget(self.text)
        column.addLayout(row)
        self.hide()

    def offer(self, n_prompt: int, n_ctx: int, can_leave_out: bool) -> None:
        """Say how much is asked for, of how much."""
        if n_prompt > n_ctx:
            text = self.tr("This would be {n} tokens, and the context holds {limit}.")
        else:
            text = self.tr("{n} of {limit} tokens: the context is nearly full.")
        self.text.setText(text.format(n=f"{n_prompt:,}", limit=f"{n_ctx:,}"))
        self.leave_out.setEnabled(can_leave_out)
        self.show()

    def _button(self, text: str, wish: object) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", "chip")
        button.clicked.connect(wish)
        return button
