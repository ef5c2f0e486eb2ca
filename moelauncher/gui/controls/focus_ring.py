"""A ring around a large widget that the keyboard came to, where nothing in it shows that yet.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from moelauncher.gui.theme import FOCUS_RING, RADIUS, theme

_BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)


class FocusRing(QWidget):
    """Lies over ``watched`` and lets everything through. A click needs no ring, and gets none."""

    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.setObjectName("focusRing")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFocusEvent):
            self.setVisible(event.gotFocus() and event.reason() in _BY_KEYBOARD)
            self._cover()
        elif event.type() == QEvent.Type.Resize:
            self._cover()
        return False

    def _cover(self) -> None:
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().colors.accent, FOCUS_RING))
        inset = FOCUS_RING / 2
        frame = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(frame, RADIUS, RADIUS)
