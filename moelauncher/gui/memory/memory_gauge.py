"""The memory gauge: one stacked bar a device, what is there solid, what is planned outlined.

In: :class:`~moelauncher.gui.memory.memory_bars.Bar` values. Out: where the user drags the margin
that is to stay free. GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import (
    QEasingCurve,
    QEvent,
    QPointF,
    QRectF,
    QSize,
    Qt,
    QVariantAnimation,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QStyle, QToolTip, QWidget

from moelauncher.core.units import MIB
from moelauncher.gui.controls.plain_tip import plain_tip
from moelauncher.gui.memory.gauge_texts import GaugeTexts
from moelauncher.gui.memory.memory_bars import KINDS, Bar
from moelauncher.gui.palette import SEGMENT, faded, hatch_brush
from moelauncher.gui.theme import EASING_MS, FOCUS_RING, font, theme

BAR_HEIGHT = 20
TITLE_HEIGHT = 18
BAR_GAP = 12
NARROW_GAP = 8  # between more than two bars
BAR_RADIUS = 4
GRAB_PX = 6
STEP_BYTES = 128 * MIB


class MemoryGauge(QWidget):
    """All devices' bars, one below the other.

    Signals:
        leave_free_changed: device name, bytes (an ``object``: Qt's int has 32 bits).
    """

    leave_free_changed = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memoryGauge")
        self.setAccessibleName(self.tr("Memory gauge"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.texts = GaugeTexts()
        self._bars: tuple[Bar, ...] = ()
        self._shown: dict[tuple[str, str, str], float] = {}  # what is painted, while it eases
        self._start: dict[tuple[str, str, str], float] = {}
        self._goal: dict[tuple[str, str, str], float] = {}
        self._current = 0  # the bar that the arrow keys move
        self._dragged: str | None = None
        self._dragged_bytes = 0
        self._easing = QVariantAnimation(self)
        self._easing.setStartValue(0.0)
        self._easing.setEndValue(1.0)
        self._easing.setDuration(EASING_MS)
        self._easing.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._easing.valueChanged.connect(self._ease)
        theme().changed.connect(self.update)

    # What is shown

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The values behind what is painted."""
        return self._bars

    def set_bars(self, bars: tuple[Bar, ...]) -> None:
        """Show ``bars``; widths ease to their new values where the same devices stay."""
        if bars == self._bars:
            return
        same = [bar.name for bar in bars] == [bar.name for bar in self._bars]
        self._bars = bars
        self._goal = _positions(bars)
        self._current = min(self._current, max(0, len(bars) - 1))
        if not same:
            self.updateGeometry()
        animated = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) > 0
        self._easing.stop()
        if same and animated and self.isVisible():
            self._start = dict(self._shown)
            self._easing.start()
        else:
            self._shown = dict(self._goal)
        self.setAccessibleDescription(self.spoken())
        self.update()

    def spoken(self) -> str:
        """All bars in words, for assistive tools."""
        return "\n".join(self.texts.sentence(bar) for bar in self._bars)

    def leave_free_of(self, bar: Bar) -> int:
        """The margin as shown, also in the middle of a drag."""
        return self._dragged_bytes if self._dragged == bar.name else bar.leave_free_bytes

    def _ease(self, progress: float) -> None:
        self._shown = {
            key: self._start.get(key, goal) + (goal - self._start.get(key, goal)) * progress
            for key, goal in self._goal.items()
        }
        self.update()

    def tip_at(self, position: QPointF) -> str:
        """The tooltip for a place in the widget."""
        index = self._bar_at(position)
        if index is None:
            return ""
        bar, area = self._bars[index], self._bar_rect(index)
        if position.y() < area.top():
            return self.texts.sentence(bar)
        if abs(position.x() - self._mark_x(bar, area)) <= GRAB_PX and bar.total_bytes:
            return self.texts.margin_tip(self.leave_free_of(bar))
        at = (position.x() - area.left()) / area.width() * bar.scale_bytes
        end = 0
        for segment in bar.segments:
            end += segment.then_bytes
            if segment.then_bytes and at <= end:
                return self.texts.segment_tip(bar, segment)
        return self.texts.free_tip(bar)

    # Geometry

    def sizeHint(self) -> QSize:
        count = len(self._bars) or 2  # a GPU and main memory, until the meters have answered
        return QSize(346, count * (TITLE_HEIGHT + BAR_HEIGHT) + (count - 1) * self._gap() + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def _gap(self) -> int:
        return BAR_GAP if len(self._bars) <= 2 else NARROW_GAP

    def _bar_rect(self, index: int) -> QRectF:
        top = index * (TITLE_HEIGHT + BAR_HEIGHT + self._gap()) + TITLE_HEIGHT
        return QRectF(0.5, top + 0.5, self.width() - 1, BAR_HEIGHT - 1)

    def _bar_at(self, position: QPointF) -> int | None:
        for index in range(len(self._bars)):
            area = self._bar_rect(index)
            if area.top() - TITLE_HEIGHT <= position.y() <= area.bottom() + 4:
                return index
        return None

    def _mark_x(self, bar: Bar, area: QRectF) -> float:
        limit = (bar.total_bytes or 0) - self.leave_free_of(bar)
        return area.left() + area.width() * max(0, limit) / bar.scale_bytes

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index, bar in enumerate(self._bars):
            area = self._bar_rect(index)
            self._paint_title(painter, bar, area)
            self._paint_bar(painter, bar, area)
            if self.hasFocus() and index == self._current:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(theme().colors.accent, FOCUS_RING))
                painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), BAR_RADIUS, BAR_RADIUS)

    def _paint_title(self, painter: QPainter, bar: Bar, area: QRectF) -> None:
        colors = theme().colors
        line = QRectF(area.left(), area.top() - TITLE_HEIGHT, area.width(), TITLE_HEIGHT - 3)
        figures_font = font("small", figures=True)
        figures = self.texts.figures(bar)
        painter.setFont(figures_font)
        metrics = QFontMetricsF(figures_font)
        width = metrics.horizontalAdvance(figures)
        painter.setPen(colors.bad if bar.over_bytes else colors.muted)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(line, right, figures)
        title = metrics.elidedText(
            self.texts.title(bar), Qt.TextElideMode.ElideRight, line.width() - width - 12
        )
        painter.setPen(colors.text)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(line, left, title)

    def _paint_bar(self, painter: QPainter, bar: Bar, area: QRectF) -> None:
        colors = theme().colors
        path = QPainterPath()
        path.addRoundedRect(area, BAR_RADIUS, BAR_RADIUS)
        painter.fillPath(path, colors.raised if colors.dark else colors.surface)
        painter.save()
        painter.setClipPath(path)
        scale = area.width() / self._shown.get((bar.name, "", "scale"), bar.scale_bytes)
        left = area.left()
        for segment in bar.segments:
            width = self._shown.get((bar.name, segment.kind, "then"), 0.0) * scale
            solid = self._shown.get((bar.name, segment.kind, "now"), 0.0) * scale
            if bar.imagined:
                self._paint_ghost(painter, segment.kind, area, left, width)
            else:
                self._paint_segment(painter, segment.kind, area, left, width, min(solid, width))
            left += width
        over = self._shown.get((bar.name, "", "over"), 0.0) * scale
        if over > 0.5:
            painter.fillRect(
                QRectF(left - over, area.top(), over, area.height()),
                hatch_brush(SEGMENT.over, self.devicePixelRatioF()),
            )
        painter.restore()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        frame = QPen(colors.bad if over > 0.5 else colors.border, 1)
        if bar.imagined:
            frame = QPen(colors.muted, 1, Qt.PenStyle.DashLine)
        painter.setPen(frame)
        painter.drawPath(path)
        if bar.total_bytes is not None and (bar.leave_free_bytes or self._dragged == bar.name):
            x = round(self._mark_x(bar, area))
            painter.fillRect(QRectF(x - 2, area.top(), 4, area.height()), colors.window)
            painter.fillRect(QRectF(x - 1, area.top() - 2, 2, area.height() + 4), colors.text)
        if bar.measured_used_bytes is not None:
            width = min(area.width(), bar.measured_used_bytes * scale)
            painter.fillRect(QRectF(area.left(), area.bottom() + 2.5, width, 1.5), colors.muted)

    def _paint_segment(
        self, painter: QPainter, kind: str, area: QRectF, left: float, width: float, solid: float
    ) -> None:
        if width <= 0:
            return
        color: QColor = SEGMENT.of(kind)
        painter.fillRect(QRectF(left, area.top(), solid, area.height()), color)
        if width - solid <= 0.05:
            return
        planned = QRectF(left + solid, area.top(), width - solid, area.height())
        painter.fillRect(planned, faded(color, 0.4))
        if planned.width() > 3:
            painter.setPen(QPen(color, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(planned.adjusted(0.75, 0.75, -0.75, -0.75))
        else:
            painter.fillRect(planned, faded(color, 0.7))

    def _paint_ghost(
        self, painter: QPainter, kind: str, area: QRectF, left: float, width: float
    ) -> None:
        """An outline and no more: there is no such memory."""
        if width <= 0:
            return
        color = SEGMENT.of(kind)
        place = QRectF(left, area.top(), width, area.height())
        if width <= 3:
            painter.fillRect(place, faded(color, 0.5))
            return
        painter.setPen(QPen(color, 1, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(place.adjusted(0.5, 2.5, -1.5, -2.5))

    # Mouse, keys, tooltips

    def _mark_under(self, position: QPointF) -> Bar | None:
        index = self._bar_at(position)
        if index is None:
            return None
        bar, area = self._bars[index], self._bar_rect(index)
        if bar.total_bytes is None or position.y() < area.top() - 2:
            return None
        return bar if abs(position.x() - self._mark_x(bar, area)) <= GRAB_PX else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        bar = self._mark_under(event.position())
        if bar is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._dragged, self._dragged_bytes = bar.name, bar.leave_free_bytes
        self._current = self._bars.index(bar)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        bar = next((bar for bar in self._bars if bar.name == self._dragged), None)
        if bar is None or bar.total_bytes is None:
            near = self._mark_under(event.position()) is not None
            self.setCursor(Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.ArrowCursor)
            return
        area = self._bar_rect(self._bars.index(bar))
        share = (event.position().x() - area.left()) / area.width()
        wanted = round((bar.total_bytes - share * bar.scale_bytes) / (32 * MIB)) * 32 * MIB
        self._set_leave_free(bar, wanted)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragged = None
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._bars:
            step = -1 if key == Qt.Key.Key_Up else 1
            self._current = min(max(0, self._current + step), len(self._bars) - 1)
            self.update()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._bars:
            bar = self._bars[self._current]
            step = STEP_BYTES if key == Qt.Key.Key_Left else -STEP_BYTES
            self._set_leave_free(bar, bar.leave_free_bytes + step)
        else:
            super().keyPressEvent(event)

    def _set_leave_free(self, bar: Bar, wanted_bytes: int) -> None:
        if bar.total_bytes is None:
            return
        wanted = min(max(0, wanted_bytes), bar.total_bytes)
        if wanted == self.leave_free_of(bar):
            return
        self._dragged_bytes = wanted
        self.leave_free_changed.emit(bar.name, wanted)
        self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            tip = plain_tip(self.tip_at(QPointF(event.pos())))
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        return super().event(event)


def _positions(bars: tuple[Bar, ...]) -> dict[tuple[str, str, str], float]:
    """Every number that moves a pixel, by bar, segment and what it is."""
    result: dict[tuple[str, str, str], float] = {}
    for bar in bars:
        result[bar.name, "", "scale"] = float(bar.scale_bytes)
        result[bar.name, "", "over"] = float(bar.over_bytes)
        for kind in ("others", *KINDS):
            # A kind that is missing now eases from nothing when it appears.
            result[bar.name, kind, "then"] = 0.0
            result[bar.name, kind, "now"] = 0.0
        for segment in bar.segments:
            result[bar.name, segment.kind, "then"] = float(segment.then_bytes)
            result[bar.name, segment.kind, "now"] = float(segment.now_bytes)
    return result
