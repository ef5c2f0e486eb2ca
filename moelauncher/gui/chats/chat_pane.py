"""The middle of the window: the chat, a line of notice, and where the user writes.

Values come in by methods, wishes go out by signals; it knows no engine. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from moelauncher.core.chats.conversation import Conversation, ShownTurn
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import Controls
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.gui import theme as look
from moelauncher.gui.chats.chat_view import ChatView
from moelauncher.gui.chats.composer import Composer
from moelauncher.gui.chats.context_offer import ContextOffer
from moelauncher.gui.chats.find_bar import FindBar
from moelauncher.gui.chats.message_scroll import COLUMN_MAX_PX
from moelauncher.gui.chats.reply_elsewhere import ReplyElsewhere
from moelauncher.gui.controls.undo_bar import UndoBar

COMPOSER_SIDE_PX = 20


class ChatPane(QWidget):
    """Chat and composer.

    Signals:
        send_requested(str): the user sent this text (never blank).
        stop_requested(): the user wants the running reply to end.
        new_chat_requested(): the user wants to start over.
        turn_action(str, int): one of the actions beneath a message, and the key of its turn.
        files_dropped(list): quote these files (Path) into the message.
        edit_cancelled(str): the message that was being edited stays; this was written for it.
        answered_chat_requested(): show the chat that is being answered.
        held_back(str): why the message that the user wanted to send stays.
    """

    send_requested = Signal(str)
    stop_requested = Signal()
    new_chat_requested = Signal()
    turn_action = Signal(str, int)
    files_dropped = Signal(list)
    edit_cancelled = Signal(str)
    answered_chat_requested = Signal()
    held_back = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chatPane")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.view = ChatView(self)
        self.find_bar = FindBar(self.view, self)
        self.composer = Composer(self)
        self._notice = QLabel(self)
        self._notice.setObjectName("chatNotice")
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self._notice.setWordWrap(True)
        self._notice.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._notice.setFont(look.font("small"))
        self._notice.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        look.set_tone(self._notice, "warn")
        self._notice.hide()

        self.undo = UndoBar(0, self)
        self.elsewhere = ReplyElsewhere(self)
        self.offer = ContextOffer(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(look.GRID)
        column.addWidget(self.find_bar)
        column.addWidget(self.view, 1)
        column.addLayout(_in_column(self.undo))
        column.addWidget(self._notice)
        column.addLayout(_in_column(self.elsewhere))
        column.addLayout(_in_column(self.offer))
        column.addLayout(_in_column(self.composer, look.PANE_MARGIN))

        self.composer.send_requested.connect(self.send_requested)
        self.composer.held_back.connect(self.held_back)
        self.view.action_requested.connect(self.turn_action)
        self.composer.edit_cancelled.connect(self.edit_cancelled)
        self.composer.stop_requested.connect(self.stop_requested)
        self.elsewhere.stop_requested.connect(self.stop_requested)
        self.elsewhere.show_requested.connect(self.answered_chat_requested)
        self.composer.new_chat_requested.connect(self.new_chat_requested)
        self.set_empty_hint(self.tr("Pick a model on the left and press Launch, then write below."))
        self._refresh_new_chat()

    def focus_input(self) -> None:
        """Let the next key press be written into the message."""
        # No focus proxies here: Qt passes over everything else in a pane that has one.
        self.composer.field.setFocus()

    def show_conversation(self, conversation: Conversation) -> None:
        """Replace the chat by a kept one."""
        self.view.show_conversation(conversation)
        self._refresh_new_chat()

    def show_turns(self, turns: Sequence[ShownTurn], held: int | None = None) -> None:
        """Show this branch; what is there already stays in its place.

        ``held``: the number of the message whose lower edge stays where it is on the screen.
        """
        self.view.show_turns(turns, held)
        self._refresh_new_chat()

    def scroll_to_end(self) -> None:
        """Show the newest message, and follow it."""
        self.view.scroll_to_end()

    def begin_edit(self, text: str) -> None:
        """Put an earlier message into the field, to be sent as another version."""
        self.composer.begin_edit(text)

    def end_edit(self) -> None:
        """Edit nothing any more; what was being written before comes back."""
        self.composer.end_edit()

    def add_user_message(self, text: str) -> None:
        """Show what the user sent."""
        self.view.add_user_message(text)
        self._refresh_new_chat()

    def begin_reply(self, label: str) -> None:
        """Open a reply; ``label`` is the model's name."""
        self.view.begin_reply(label)
        self._refresh_new_chat()

    def append(self, text: str, reasoning: str) -> None:
        """Add streamed text, coalesced over a paint interval."""
        self.view.append(text, reasoning)

    def set_prompt_progress(self, reading: PromptReading) -> None:
        """Show how much of the prompt is read."""
        self.view.set_prompt_progress(reading)

    def finish_reply(self, stats: GenerationStats, placement_text: str) -> None:
        """Close the reply and show its numbers."""
        self.view.finish_reply(stats, placement_text)

    def fail_reply(self, error: LauncherError) -> None:
        """Close the reply with an error; opens one where none is open."""
        self.view.fail_reply(error)
        self._refresh_new_chat()

    def clear(self) -> None:
        """Empty the chat."""
        self.view.clear()
        self._refresh_new_chat()

    def set_controls(self, controls: Controls, elsewhere: str = "") -> None:
        """Which of Send and Stop work now.

        ``elsewhere``: the title of another chat that is being answered; empty: none is.
        """
        self.elsewhere.set_title(elsewhere, controls.stop_enabled)
        can_stop = controls.stop_enabled and not elsewhere
        why_not = self._why_not(controls, elsewhere)
        self.composer.set_enabled_actions(controls.send_enabled, can_stop, why_not)

    def _why_not(self, controls: Controls, elsewhere: str) -> str:
        if elsewhere:
            text = self.tr("One reply at a time: one is being written in “{title}”.")
            return text.format(title=elsewhere)
        if controls.send_enabled or controls.stop_enabled:
            return ""
        if controls.busy:
            return self.tr("The model cannot answer yet; the message stays until it can.")
        return self.tr("Launch a model first: nobody is there to answer.")

    def set_context(self, used: int | None, total: int | None) -> None:
        """Tokens of the context in use, of how many."""
        self.composer.set_context(used, total)

    def set_model_name(self, name: str) -> None:
        """The model that answers, named in the empty field; "" for none."""
        self.composer.set_model_name(name)

    def set_empty_hint(self, text: str) -> None:
        """What an empty chat tells the user to do."""
        self.view.set_empty_hint(text)

    def set_notice(self, text: str) -> None:
        """A line above the composer ("no chat template: ..."); "" hides it."""
        self._notice.setText(text)
        self._notice.setVisible(bool(text))

    def _refresh_new_chat(self) -> None:
        self.composer.new_chat.setEnabled(self.view.n_messages > 0)

    # Qt's own

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What the messages have no use for: Escape ends a reply, letters go into the message."""
        if event.key() == Qt.Key.Key_Escape and self.composer.stop.isEnabled():
            self.stop_requested.emit()
        elif self.view.hasFocus() and _writes(event):
            self.focus_input()
            QCoreApplication.sendEvent(self.composer.field, event)
        else:
            super().keyPressEvent(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(320, 240)


def _writes(event: QKeyEvent) -> bool:
    plain = not event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
    return plain and event.text().isprintable() and bool(event.text().strip())


def _in_column(widget: QWidget, below_px: int = 0) -> QHBoxLayout:
    """``widget`` as wide as the messages above it."""
    widget.setMaximumWidth(round(COLUMN_MAX_PX) + 16)
    row = QHBoxLayout()
    row.setContentsMargins(COMPOSER_SIDE_PX, 0, COMPOSER_SIDE_PX, below_px)
    row.addWidget(widget)
    return row
