"""A thin progress bar with a line of text that keeps its room when there is nothing to say."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, QTimerEvent
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from moelauncher.gui.controls.plain_tip import plain_tip
from moelauncher.gui.theme import font, theme

TRACK = 4
TICK_MS = 33
SWEEP_TICKS = 45


class ProgressLine(QWidget):
    """``set_progress(text, fraction)``; a fraction of None sweeps, an empty text shows nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("loadProgress")
        self.setAccessibleName(self.tr("Progress"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFont(font("small", figures=True))
        self._text = ""
        self._fraction: float | None = None
        self._tick = 0
        self._timer = 0
        theme().changed.connect(self.update)

    @property
    def text(self) -> str:
        """What is shown."""
        return self._text

    @property
    def fraction(self) -> float | None:
        """0 to 1, or None."""
        return self._fraction

    def set_progress(self, text: str, fraction: float | None) -> None:
        """Show how far something is. Empty text: nothing is going on."""
        self._text = " ".join(text.split())
        self._fraction = None if fraction is None else min(1.0, max(0.0, fraction))
        self.setAccessibleDescription(self._text)
        self.setToolTip(plain_tip(self._text))
        self._run()
        self.update()

    def _run(self) -> None:
        sweeps = bool(self._text) and self._fraction is None and self.isVisible()
        if sweeps and not self._timer:
            self._timer = self.startTimer(TICK_MS)
        elif not sweeps and self._timer:
            self.killTimer(self._timer)
            self._timer = 0

    def sizeHint(self) -> QSize:
        return QSize(200, TRACK + 4 + self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._run()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._run()

    def timerEvent(self, event: QTimerEvent) -> None:
        self._tick = (self._tick + 1) % SWEEP_TICKS
        self.update(0, 0, self.width(), TRACK)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._text:
            return
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(0, 0, self.width(), TRACK)
        painter.setBrush(colors.border)
        painter.drawRoundedRect(track, TRACK / 2, TRACK / 2)
        if self._fraction is None:
            width = self.width() / 4
            left = (self.width() + width) * self._tick / SWEEP_TICKS - width
            fill = QRectF(left, 0, width, TRACK).intersected(track)
        else:
            fill = QRectF(0, 0, self.width() * self._fraction, TRACK)
        painter.setBrush(colors.accent)
        painter.drawRoundedRect(fill, TRACK / 2, TRACK / 2)
        painter.setPen(colors.muted)
        line = QRectF(0, TRACK + 2, self.width(), self.height() - TRACK - 2)
        text = self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
