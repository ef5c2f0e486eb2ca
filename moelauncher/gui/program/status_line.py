"""The status line: state, prompt, context, GPU, warnings; or one clear sentence about an event."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from moelauncher.gui.controls.elided_label import ElidedLabel
from moelauncher.gui.theme import PANE_MARGIN, STATUS_HEIGHT, font, set_tone

MESSAGE_S = 12
TONES = {"info": "", "good": "good", "warning": "warn", "error": "bad"}


class _MessageLabel(ElidedLabel):
    """A click puts the message away."""

    dismissed = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.dismissed.emit()


class StatusLine(QWidget):
    """One line at the window's foot.

    A message covers the parts: information for some seconds (the state and its figures stay
    beside it), warnings and errors until they are clicked or the next message comes.

    Signals:
        warnings_clicked: show the log.
    """

    warnings_clicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusLine")
        self.setAccessibleName(self.tr("Status"))
        self.setFixedHeight(STATUS_HEIGHT)
        row = QHBoxLayout(self)
        row.setContentsMargins(PANE_MARGIN, 0, PANE_MARGIN, 0)
        row.setSpacing(22)
        self.message = _MessageLabel()
        self.message.setObjectName("statusMessage")
        self.message.setAccessibleName(self.tr("Message"))
        self.message.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.message.hide()
        self.message.dismissed.connect(self.clear_message)
        self.state = self._part(self.tr("State"), "")
        self.state_figures = self._part(self.tr("Speed"))
        self.prompt = self._part(self.tr("Prompt"))
        self.context = self._part(self.tr("Context"))
        self.gpu = self._part(self.tr("GPU"))
        self.build = self._part(self.tr("Build and threads"))
        self.build.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.build.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.state.setFont(font("small", bold=True))
        self.warnings = QPushButton()
        self.warnings.setObjectName("warningsButton")
        self.warnings.setProperty("kind", "warnings")
        self.warnings.setFont(font("small", figures=True))
        self.warnings.hide()
        self.warnings.clicked.connect(self.warnings_clicked)
        state_row = QHBoxLayout()
        state_row.setSpacing(5)
        state_row.addWidget(self.state)
        state_row.addWidget(self.state_figures)
        self.offer = QPushButton()
        self.offer.setObjectName("offerButton")
        self.offer.setProperty("kind", "foot")
        self.offer.setFont(font("small", figures=True))
        self.offer.setAutoDefault(False)
        self.offer.hide()
        self.offer.clicked.connect(self._take_offer)
        self._action: Callable[[], None] | None = None
        row.addLayout(state_row)
        row.addWidget(self.message, 1)
        row.addWidget(self.offer)
        for part in (self.prompt, self.context, self.gpu, self.warnings):
            row.addWidget(part)
        row.addWidget(self.build, 1)
        self._row = row
        self._parts = (
            self.state,
            self.state_figures,
            self.prompt,
            self.context,
            self.gpu,
        )
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(MESSAGE_S * 1000)
        self._timer.timeout.connect(self.clear_message)
        for part in self._parts:
            part.hide()

    def _part(self, name: str, tone: str = "muted") -> ElidedLabel:
        label = ElidedLabel()
        label.setFont(font("small", figures=True))
        label.setAccessibleName(name)
        set_tone(label, tone)
        return label

    def set_state(self, text: str, figures: str = "") -> None:
        """What goes on ("generating") and its figure ("38.4 tok/s")."""
        self._show(self.state, text)
        self._show(self.state_figures, figures)

    def set_prompt(self, text: str) -> None:
        """ "prompt 412 tokens, 310 tok/s"."""
        self._show(self.prompt, text)

    def set_context(self, text: str) -> None:
        """ "context 1.2k of 32k"."""
        self._show(self.context, text)

    def set_gpu(self, text: str, tip: str = "") -> None:
        """ "GPU 62 °C, 71 %"."""
        self._show(self.gpu, text, tip)

    def set_build(self, text: str, tip: str = "") -> None:
        """ "Vulkan · CPU variant zen4 · 7 threads"."""
        self.build.set_text(text, tip)

    def set_warnings(self, count: int, tip: str = "") -> None:
        """How many warnings the log holds; 0 hides the button."""
        self.warnings.setText(
            self.tr("1 warning") if count == 1 else self.tr("{n} warnings").format(n=count)
        )
        self.warnings.setToolTip(tip or self.tr("Show the log"))
        self.warnings.setVisible(count > 0)

    def set_message(
        self,
        text: str,
        level: str = "info",
        offer: str = "",
        action: Callable[[], None] | None = None,
    ) -> None:
        """One sentence over the line. ``level``: "info", "good", "warning", "error".

        ``offer`` is what a button beside it says; its press puts the message away and calls
        ``action``.
        """
        if not text:
            self.clear_message()
            return
        set_tone(self.message, TONES[level])
        self.message.set_text(text)
        self.message.setAccessibleDescription(text)
        self.message.show()
        self._row.setStretchFactor(self.build, 0)  # the sentence takes all the room there is
        self._action = action
        self.offer.setText(offer.replace("&", "&&"))
        self.offer.setAccessibleName(offer)
        self.offer.setVisible(bool(offer))
        if level in ("info", "good") and not offer:
            self._timer.start()
        else:
            self._timer.stop()
        self._show_parts()

    def clear_message(self) -> None:
        """Show the parts again."""
        self._timer.stop()
        self._action = None
        self.offer.hide()
        self.message.hide()
        self._row.setStretchFactor(self.build, 1)
        self.message.set_text("")
        self._show_parts()

    def _take_offer(self) -> None:
        action = self._action
        self.clear_message()
        if action is not None:
            action()

    def _show(self, part: ElidedLabel, text: str, tip: str = "") -> None:
        part.set_text(text, tip)
        self._show_parts()

    def _show_parts(self) -> None:
        beside_message = (self.state, self.state_figures) if self._timer.isActive() else ()
        for part in self._parts:
            room = self.message.isHidden() or part in beside_message
            part.setVisible(bool(part.text()) and room)
