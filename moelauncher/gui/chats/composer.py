"""Where the user writes: the message's field, Send or Stop, and the context in use.

GUI thread only.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.units import format_tokens
from moelauncher.gui import theme as look
from moelauncher.gui.chats.context_bar import ContextBar
from moelauncher.gui.chats.message_field import MessageField
from moelauncher.gui.chats.preset_chip import PresetChip
from moelauncher.gui.chats.thinking_chip import ThinkingChip
from moelauncher.gui.controls.crowded_row import CrowdedRow
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.plain_tip import plain_tip

NEARLY_FULL = 0.85
#: Lines before the first one that says something.
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


class Composer(QWidget):
    """The card at the bottom of the chat.

    Signals:
        send_requested(str): send this text; the field is cleared by then.
        stop_requested(): end the running reply.
        new_chat_requested(): start over.
        edit_cancelled(str): the message that was being edited stays; this was written for it.
        settings_requested(): show what is set for this chat.
        held_back(str): the user wanted to send, and this is why it cannot be done now.
    """

    send_requested = Signal(str)
    stop_requested = Signal()
    new_chat_requested = Signal()
    edit_cancelled = Signal(str)
    settings_requested = Signal()
    held_back = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._send_enabled = False
        self._why_not = ""
        self._last_sent = ""
        self._used: int | None = None
        self._total: int | None = None
        self._draft_use: int | None = None
        self._draft: str | None = None  # what was being written before an edit began
        self.field = MessageField(self)
        self.field.setObjectName("chatInput")
        self.field.setAccessibleName(self.tr("Message"))
        self.field.setPlaceholderText(self.tr("Message"))
        self.field.submitted.connect(self._submit)
        self.field.recall_requested.connect(self._recall)
        self.field.escaped.connect(self._escape)
        self.field.textChanged.connect(self._refresh)
        self.field.focus_changed.connect(self.update)

        self.new_chat = QPushButton(self.tr("New chat"), self)
        self.new_chat.setObjectName("newChatButton")
        self.new_chat.setProperty("kind", "chip")
        self.new_chat.setToolTip(self.tr("Start over; the model stays loaded."))
        self.new_chat.clicked.connect(self.new_chat_requested)
        self.settings = QPushButton(self.tr("Settings"), self)
        self.settings.setObjectName("chatSettingsButton")
        self.settings.setProperty("kind", "chip")
        self.settings.setToolTip(
            self.tr("System prompt, temperature and the like, for this chat alone")
        )
        self.settings.clicked.connect(self.settings_requested)
        self.thinking = ThinkingChip(self)
        self.preset = PresetChip(self)
        self.preset.settings_requested.connect(self.settings_requested)
        self.context_bar = ContextBar(self)
        self.context = QLabel(self)
        self.context.setObjectName("contextUse")
        self.context.setFont(look.font("small", figures=True))
        look.set_tone(self.context, "muted")

        self.send = QPushButton(self.tr("Send"), self)
        self.send.setObjectName("sendButton")
        self.send.setProperty("kind", "primary")
        self.send.clicked.connect(self._submit)
        self.stop = QPushButton(self.tr("Stop"), self)
        self.stop.setObjectName("stopButton")
        self.stop.setToolTip(self.tr("End this reply (Esc); what is there stays."))
        self.stop.clicked.connect(self.stop_requested)
        for button in (self.send, self.stop):
            button.setAccessibleName(button.text())

        place = QWidget(self)
        self._place = QStackedLayout(place)
        self._place.addWidget(self.send)
        self._place.addWidget(self.stop)
        self.stop.setEnabled(False)
        wide = max(self.send.sizeHint().width(), self.stop.sizeHint().width(), 72)
        place.setFixedSize(QSize(wide, look.CONTROL_HEIGHT))

        self.edit_line = QWidget(self)
        edit_text = plain_label(
            self.tr("Editing an earlier message: Send begins a branch"), "muted"
        )
        edit_text.setFont(look.font("small"))
        edit_cancel = QPushButton(self.tr("Cancel"), self.edit_line)
        edit_cancel.setObjectName("cancelEditButton")
        edit_cancel.setProperty("kind", "link")
        edit_cancel.clicked.connect(self._cancel_edit)
        edit_row = QHBoxLayout(self.edit_line)
        edit_row.setContentsMargins(0, 0, 0, 0)
        edit_row.addWidget(edit_text)
        edit_row.addStretch(1)
        edit_row.addWidget(edit_cancel)
        self.edit_line.hide()

        row = QHBoxLayout()
        row.setSpacing(look.GRID)
        row.addWidget(self.new_chat)
        row.addWidget(self.settings)
        row.addWidget(self.thinking)
        row.addWidget(self.preset)
        row.addStretch(1)
        row.addWidget(self.context_bar)
        row.addWidget(self.context)
        row.addWidget(place)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(look.GRID)
        column.addWidget(self.edit_line)
        column.addWidget(self.field)
        column.addLayout(row)
        # In a narrow window: what stands elsewhere too.
        spare = (self.context_bar, self.preset, self.new_chat, self.context)
        CrowdedRow(row, spare, self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        look.theme().changed.connect(self._restyle)
        self._refresh()

    def set_model_name(self, name: str) -> None:
        """Name the model in the empty field; "" for none."""
        self.field.setPlaceholderText(
            self.tr("Message {model}").format(model=name) if name else self.tr("Message")
        )

    def begin_edit(self, text: str) -> None:
        """Put an earlier message into the field; what was there waits."""
        if self._draft is None:
            self._draft = self.field.text
        self._put(text)
        self.edit_line.show()
        self.field.setFocus()

    @property
    def text(self) -> str:
        """What stands in the field."""
        return self.field.text

    def set_draft(self, text: str) -> None:
        """Let ``text`` stand in the field, to be written on."""
        if text != self.text:
            self._put(text)

    def add_text(self, text: str) -> None:
        """Put ``text`` behind what is being written."""
        before = self.field.text.rstrip()
        self._put(f"{before}\n\n{text}" if before else text)
        self.field.setFocus()

    def end_edit(self) -> None:
        """Back to what was being written before the edit."""
        if self._draft is not None:
            self._put(self._draft)
            self._draft = None
            self.edit_line.hide()

    def set_enabled_actions(self, send: bool, stop: bool, why_not: str = "") -> None:
        """Which of Send and Stop work now; Stop takes Send's place while it does.

        ``why_not``: a sentence on why there is nothing to send now; empty where it is plain.
        """
        had_focus = self.stop.hasFocus() or self.send.hasFocus()
        self._send_enabled, self._why_not = send, why_not
        tip = plain_tip(why_not) or self.tr("Send (Enter). Shift+Enter starts a new line.")
        self.send.setToolTip(tip)
        self.send.setAccessibleDescription(why_not)
        self.stop.setEnabled(stop)
        self._place.setCurrentWidget(self.stop if stop else self.send)
        if had_focus:
            (self.stop if stop else self.field).setFocus()
        self._refresh()

    def set_context(self, used: int | None, total: int | None) -> None:
        """Tokens of the context in use; unknown shows nothing."""
        self._used, self._total = used, total
        self._show_context()

    def set_draft_use(self, n_tokens: int | None) -> None:
        """Tokens that the context would take with what is being written; None: not counted."""
        self._draft_use = n_tokens
        self._show_context()

    def _show_context(self) -> None:
        used = self._used if self._draft_use is None else self._draft_use
        total = self._total
        full = used is not None and bool(total) and used >= (total or 0) * NEARLY_FULL
        self.context_bar.set_share(used / total if used is not None and total else None, full)
        if used is None:
            self.context.setText("")
            self.context.setToolTip("")
            return
        shown = format_tokens(used)
        if total is None:
            self.context.setText(self.tr("{used} tokens").format(used=shown))
            return
        text = self.tr("{used} of {total}").format(used=shown, total=format_tokens(total))
        if used > total:
            text = self.tr("too much: {use}").format(use=text)
        elif full:
            text = self.tr("nearly full: {use}").format(use=text)
        self.context.setText(text)
        look.set_tone(self.context, "warn" if full else "muted")
        if self._draft_use is None:
            tip = self.tr("{used} of {total} tokens of the context are in use.")
        else:
            tip = self.tr("{used} of {total} tokens of the context, this message included.")
        self.context.setToolTip(tip.format(used=f"{used:,}", total=f"{total:,}"))

    def _restyle(self) -> None:
        font = look.chat_font()
        if self.field.font().pixelSize() != font.pixelSize():
            self.field.setFont(font)
            # Where the placeholder is painted: a style sheet keeps Qt from handing it on.
            self.field.viewport().setFont(font)
            self.field.document().setDefaultFont(font)
        self.update()

    def _submit(self) -> None:
        text = _as_sent(self.field.text)
        if not text:
            return
        if not self._send_enabled:
            if self._why_not:
                self.held_back.emit(self._why_not)
            return
        self._last_sent = text
        self.field.setPlainText(self._draft or "")
        self._draft = None
        self.edit_line.hide()
        self.send_requested.emit(text)

    def _escape(self) -> None:
        if self.stop.isEnabled():
            self.stop_requested.emit()
        elif self._draft is not None:
            self._cancel_edit()

    def _cancel_edit(self) -> None:
        edited = self.field.text
        self.end_edit()
        self.edit_cancelled.emit(edited)
        self.field.setFocus()

    def _recall(self) -> None:
        if self._last_sent:
            self._put(self._last_sent)

    def _put(self, text: str) -> None:
        self.field.setPlainText(text)
        cursor = self.field.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.field.setTextCursor(cursor)

    def _refresh(self) -> None:
        self.send.setEnabled(self._send_enabled and bool(self.field.text.strip()))

    # Qt's own

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = look.theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = self.field.hasFocus()
        painter.setPen(QPen(colors.accent if focused else colors.border, look.BORDER))
        painter.setBrush(colors.surface)
        box = self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, look.RADIUS + 2, look.RADIUS + 2)


def _as_sent(text: str) -> str:
    """``text`` without the empty lines around it; a text of several lines keeps its indents."""
    whole = text.rstrip()
    return _BLANK_LINES.sub("", whole) if "\n" in whole else whole.strip()
