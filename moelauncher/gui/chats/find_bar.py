"""Find in the chat: what is searched, how many places there are, and which is shown.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QToolButton, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.chats.chat_view import ChatView
from moelauncher.gui.controls.pane import plain_label

SEARCH_AFTER_MS = 120
FIELD_MAX_PX = 420


class FindBar(QWidget):
    """Hidden until :meth:`open`. Enter goes on, Shift+Enter back, Escape closes."""

    def __init__(self, view: ChatView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self._view = view
        self.field = QLineEdit(self)
        self.field.setObjectName("findField")
        self.field.setAccessibleName(self.tr("Find in this chat"))
        self.field.setPlaceholderText(self.tr("Find in this chat"))
        self.field.setAcceptDrops(False)
        self.field.installEventFilter(self)
        self.count = plain_label("", "muted", self)
        self.count.setFont(look.font("small", figures=True))
        self.count.setMinimumWidth(72)
        row = QHBoxLayout(self)
        row.setContentsMargins(look.PANE_MARGIN, look.GRID, look.PANE_MARGIN, 0)
        row.setSpacing(look.HALF)
        row.addStretch(1)
        self.field.setMaximumWidth(FIELD_MAX_PX)
        row.addWidget(self.field, 100)
        row.addWidget(self.count)
        for sign, name, step in (
            ("↑", self.tr("Previous place"), -1),
            ("↓", self.tr("Next place"), 1),
        ):
            button = self._button(sign, name)
            button.clicked.connect(lambda _=False, step=step: self._step(step))
            row.addWidget(button)
        close = self._button("✕", self.tr("Close the search"))
        close.clicked.connect(self.close_search)
        row.addWidget(close)
        self._typed = QTimer(self, singleShot=True, interval=SEARCH_AFTER_MS)
        self._typed.timeout.connect(self._search)
        self.field.textChanged.connect(self._typed.start)
        view.hits_changed.connect(self._tell)
        self.hide()

    def open(self) -> None:
        """Show the bar, and let the user type."""
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        self._search()

    def close_search(self) -> None:
        """Hide the bar and the marks."""
        self._typed.stop()
        self.hide()
        self._view.find_text("")
        self._view.setFocus()

    def _search(self) -> None:
        self._view.find_text(self.field.text())
        self._tell()

    def _step(self, step: int) -> None:
        if self._typed.isActive():
            self._typed.stop()
            self._search()
        else:
            self._view.step_hit(step)
            self._tell()

    def _tell(self) -> None:
        n_hits, at = self._view.hits
        if not self.field.text():
            text = ""
        elif n_hits == 0:
            text = self.tr("not found")
        else:
            text = self.tr("{n} of {all}").format(n=at + 1, all=n_hits)
        self.count.setText(text)

    def _button(self, sign: str, name: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(sign)
        button.setProperty("kind", "quiet")
        button.setToolTip(name)
        button.setAccessibleName(name)
        return button

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                self._step(-1 if back else 1)
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_search()
                return True
        return super().eventFilter(watched, event)
