"""The text field of a message: it grows with its text, and Enter sends.

Shift+Enter starts a line, Up in the empty field asks for the last message. An Enter that ends an
input-method composition never sends. GUI thread only.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetricsF,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

LINES_MAX = 8
#: Within this time after a composition ended, Enter still belongs to it.
COMPOSITION_END_MS = 50


class MessageField(QPlainTextEdit):
    """The text field.

    Signals:
        submitted(): Enter was pressed.
        recall_requested(): Up was pressed in the empty field.
        escaped(): Escape was pressed, outside of a composition.
        focus_changed(): the field got or lost the keyboard.
    """

    submitted = Signal()
    recall_requested = Signal()
    escaped = Signal()
    focus_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setStyleSheet("QPlainTextEdit { background: transparent; border: none; padding: 0; }")
        self.setTabChangesFocus(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # All lines wrap; while the upright bar comes, Qt would show one for a moment's width.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self._composing = False
        self._composition_ended = QTimer(self, singleShot=True, interval=COMPOSITION_END_MS)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.horizontalScrollBar().valueChanged.connect(self._stay_left)
        self._fit()

    @property
    def text(self) -> str:
        """What stands in the field, to the letter."""
        # Qt's toPlainText makes spaces of those that shall not break.
        raw = self.document().toRawText()
        return raw.replace("\u2029", "\n").replace("\u2028", "\n")

    @property
    def shown_lines(self) -> int:
        """How many lines the field is tall."""
        return max(1, min(LINES_MAX, round(self.document().size().height())))

    def _fit(self) -> None:
        # A plain text document measures its height in lines.
        lines = round(self.document().size().height())
        self.setFixedHeight(ceil(self.shown_lines * self._line_px()) + 4)
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if lines > LINES_MAX else policy.ScrollBarAlwaysOff
        )

    def _stay_left(self, value: int) -> None:
        # Spaces that hang over a line's end would push its beginning out of sight.
        if value:
            self.horizontalScrollBar().setValue(0)

    def _line_px(self) -> float:
        """How tall a line is laid out, which may be more than the font asks for."""
        first = self.document().firstBlock()
        tall = self.document().documentLayout().blockBoundingRect(first).height()
        n_lines = first.layout().lineCount()
        return tall / n_lines if n_lines and tall else QFontMetricsF(self.font()).lineSpacing()

    # Qt's own

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        was_composing = self._composing
        self._composing = bool(event.preeditString())
        if was_composing and not self._composing:
            self._composition_ended.start()
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if enter and (self._composing or self._composition_ended.isActive()):
            self._composition_ended.stop()
            event.accept()
        elif enter and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            # Qt's own Shift+Enter makes a line separator, which is not a line break in text.
            self.textCursor().insertText("\n")
            self.ensureCursorVisible()
        elif enter and plain:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Up and plain and not self.toPlainText():
            self.recall_requested.emit()
        elif event.key() == Qt.Key.Key_Escape and not self._composing:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        # Files that are dropped here are for the window, which takes models and folders.
        if any(url.isLocalFile() for url in source.urls()):
            return False
        return super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        # Qt's own way through a document fragment takes twice as long for megabytes.
        if source.hasText():
            self.textCursor().insertText(source.text())
            self.ensureCursorVisible()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
