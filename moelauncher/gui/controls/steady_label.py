"""A wrapping label whose height only ever grows, so that what stands below it keeps its place."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from moelauncher.gui.theme import set_tone


class SteadyLabel(QLabel):
    """Plain text. Reserves ``lines`` lines, and more once a text has needed them."""

    def __init__(
        self, lines: int, font: QFont, tone: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.setFont(font)
        if tone:
            set_tone(self, tone)
        self._lines = lines
        self._least = lines
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setSizePolicy(policy)

    def set_text(self, text: str) -> None:
        """Show ``text``, growing where it needs more lines than any before."""
        if text != self.text():
            self.setText(text)
            self._grow()

    def _grow(self) -> None:
        if self.width() < 40 or not self.text():
            return
        flags = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft
        needed = self.fontMetrics().boundingRect(0, 0, self.width(), 10_000, flags, self.text())
        lines = -(-needed.height() // self.fontMetrics().lineSpacing())
        if lines > self._lines:
            self._lines = lines
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(200, self._lines * self.fontMetrics().lineSpacing() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def hasHeightForWidth(self) -> bool:
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._lines = self._least
            self._grow()
            self.updateGeometry()
