"""The slider over the expert layers. What its stops mean is decided in the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from moelauncher.gui.palette import SEGMENT, hatch_brush, mixed
from moelauncher.gui.theme import FOCUS_RING, theme

HANDLE_RADIUS = 8
GROOVE = 5
_FAINT = 0.65
#: How strong the slowest stop is; the fastest is 1.
_SLOWEST = 0.25


class ExpertSlider(QSlider):
    """A horizontal slider that goes where it is clicked and shows which stops fit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setPageStep(4)
        self._fits: tuple[bool | None, ...] = ()
        self._speeds: dict[int, float] = {}
        self._tint = 1.0
        theme().changed.connect(self.update)

    def set_fits(self, fits: Sequence[bool | None]) -> None:
        """Whether each stop fits in memory, from stop 0 on; empty where nothing is known."""
        if tuple(fits) != self._fits:
            self._fits = tuple(fits)
            self.update()

    def set_speeds(self, speeds: Mapping[int, float], *, expected: bool = False) -> None:
        """tok/s of some stops: the groove is tinted by them, faintly where they are not measured
        but ``expected``."""
        tint = _FAINT if expected else 1.0
        if (dict(speeds), tint) != (self._speeds, self._tint):
            self._speeds, self._tint = dict(speeds), tint
            self.update()

    @property
    def fits(self) -> tuple[bool | None, ...]:
        """As set."""
        return self._fits

    # Geometry

    def _x_of(self, value: float) -> float:
        span = max(1, self.maximum() - self.minimum())
        room = self.width() - 2 * HANDLE_RADIUS - 2
        return HANDLE_RADIUS + 1 + room * (value - self.minimum()) / span

    def _value_at(self, x: float) -> int:
        room = max(1, self.width() - 2 * HANDLE_RADIUS - 2)
        share = (x - HANDLE_RADIUS - 1) / room
        return round(self.minimum() + share * (self.maximum() - self.minimum()))

    def sizeHint(self) -> QSize:
        return QSize(200, 24)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, 24)

    # Mouse: Fusion's slider pages towards a click; here the handle comes at once.

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self.setSliderDown(True)
        self.setSliderPosition(self._value_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self.setSliderPosition(self._value_at(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.setSliderDown(False)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The pane scrolls in a small window: the wheel must not move a slider in passing.
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = self.height() / 2
        groove = QRectF(1, middle - GROOVE / 2, self.width() - 2, GROOVE)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.border)
        painter.drawRoundedRect(groove, GROOVE / 2, GROOVE / 2)
        if self.isEnabled():
            self._paint_fits(painter, groove)
            self._paint_speeds(painter, groove)
            self._paint_handle(painter, middle)

    def _paint_fits(self, painter: QPainter, groove: QRectF) -> None:
        colors = theme().colors
        if not any(fit is not None for fit in self._fits):
            painter.setBrush(mixed(colors.border, colors.accent, 0.65))
            left = QRectF(groove)
            left.setRight(self._x_of(self.value()))
            painter.drawRoundedRect(left, GROOVE / 2, GROOVE / 2)
            return
        painter.save()
        painter.setClipRect(groove)
        good = mixed(colors.good, colors.window, 0.35)
        for stop, fit in enumerate(self._fits[: self.maximum() + 1]):
            if fit is None:
                continue
            start = groove.left() if stop == 0 else self._x_of(stop - 0.5)
            end = groove.right() if stop == self.maximum() else self._x_of(stop + 0.5)
            brush = good if fit else hatch_brush(SEGMENT.over, self.devicePixelRatioF())
            painter.setBrush(brush)
            painter.drawRect(QRectF(start, groove.top(), end - start + 0.5, groove.height()))
        painter.restore()

    def _paint_speeds(self, painter: QPainter, groove: QRectF) -> None:
        """Between the measured stops the fast ones are strong, the slow ones faint."""
        if len(self._speeds) < 2:
            return
        colors = theme().colors
        fastest, slowest = max(self._speeds.values()), min(self._speeds.values())
        stops = sorted(self._speeds)
        tint = QLinearGradient(self._x_of(stops[0]), 0, self._x_of(stops[-1]), 0)
        span = max(1, stops[-1] - stops[0])
        for stop in stops:
            share = (self._speeds[stop] - slowest) / max(fastest - slowest, 0.05 * fastest)
            strength = (_SLOWEST + (1 - _SLOWEST) * share) * self._tint
            tint.setColorAt((stop - stops[0]) / span, mixed(colors.border, colors.accent, strength))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QBrush(tint))
        # An end of the slider is an end of the groove, which reaches on by half a handle.
        first, last = stops[0] == self.minimum(), stops[-1] == self.maximum()
        area = QRectF(groove).adjusted(0, 1, 0, -1)
        area.setLeft(groove.left() if first else self._x_of(stops[0]))
        area.setRight(groove.right() if last else self._x_of(stops[-1]))
        painter.drawRect(area)

    def _paint_handle(self, painter: QPainter, middle: float) -> None:
        colors = theme().colors
        center = QPointF(self._x_of(self.sliderPosition()), middle)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.text, FOCUS_RING))
            painter.drawEllipse(center, HANDLE_RADIUS + 2.5, HANDLE_RADIUS + 2.5)
        pressed = self.isSliderDown()
        painter.setPen(QPen(colors.accent, 3))
        painter.setBrush(colors.accent if pressed else colors.text)
        painter.drawEllipse(center, HANDLE_RADIUS - 1.5, HANDLE_RADIUS - 1.5)
