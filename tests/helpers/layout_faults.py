"""What of a laid-out window cannot be read: cut off, too narrow for its words, or under another.

In: a shown widget. Out: a sentence a fault. A label that shortens its text by itself is none,
nor is what a scroll area has below its edge. GUI thread.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollBar,
    QStyle,
    QStyleOptionComboBox,
    QWidget,
)

from moelauncher.gui.controls.elided_label import ElidedLabel

_PAINTED = (QLabel, QAbstractButton, QLineEdit, QAbstractScrollArea)


def layout_faults(top: QWidget) -> list[str]:
    """Everything that is wrong in ``top``, which must be shown and laid out."""
    faults = []
    for widget in _shown(top):
        faults += [*_cut(widget), *_words(widget)]
    faults += _overlaps(top)
    return faults


def _shown(top: QWidget) -> list[QWidget]:
    return [widget for widget in top.findChildren(QWidget) if widget.isVisibleTo(top)]


def _in_scroll_area(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    area = parent.parentWidget() if parent is not None else None
    return isinstance(area, QAbstractScrollArea) and area.viewport() is parent


def _cut(widget: QWidget) -> Iterator[str]:
    parent = widget.parentWidget()
    if widget.isWindow() or parent is None:
        return
    inside, place = parent.rect(), widget.geometry()
    if _in_scroll_area(widget):
        # It may be longer than the area is tall, but not wider.
        place.setTop(inside.top())
        place.setHeight(min(place.height(), inside.height()))
    if not inside.contains(place):
        yield f"{_name(widget)} at {_numbers(place)} leaves its parent's {_numbers(inside)}"


def _words(widget: QWidget) -> Iterator[str]:
    room = widget.contentsRect().size()
    if isinstance(widget, ElidedLabel):
        return
    if isinstance(widget, QLabel) and widget.text():
        flags = Qt.TextFlag.TextWordWrap if widget.wordWrap() else Qt.TextFlag.TextExpandTabs
        margin = 2 * widget.margin()
        width, height = room.width() - margin, room.height() - margin
        needed = widget.fontMetrics().boundingRect(0, 0, width, 10_000, flags, widget.text())
        if needed.width() > width or needed.height() > height:
            yield (
                f"{_name(widget)} needs {needed.width()} x {needed.height()},"
                f" has {width} x {height}: {widget.text()}"
            )
    else:
        text, width = "", room.width()
        if isinstance(widget, QPushButton):
            text = widget.text()
        elif isinstance(widget, QComboBox):
            text, width = widget.currentText(), _text_width(widget)
        needed_width = widget.fontMetrics().horizontalAdvance(text)
        if needed_width > width:
            yield f"{_name(widget)} needs {needed_width}, has {width}: {text}"


def _text_width(combo: QComboBox) -> int:
    option = QStyleOptionComboBox()
    combo.initStyleOption(option)
    return (
        combo.style()
        .subControlRect(
            QStyle.ComplexControl.CC_ComboBox,
            option,
            QStyle.SubControl.SC_ComboBoxEditField,
            combo,
        )
        .width()
    )


def _overlaps(top: QWidget) -> Iterator[str]:
    """Of those that paint words or take a click; layers without are laid over others."""
    painted = [
        (widget, _seen_place(widget, top))
        for widget in _shown(top)
        if isinstance(widget, _PAINTED) and not isinstance(widget, QScrollBar)
        if not isinstance(widget, QFrame) or isinstance(widget, (QLabel, QAbstractScrollArea))
    ]
    for number, (one, place) in enumerate(painted):
        for other, there in painted[number + 1 :]:
            if one.isAncestorOf(other) or other.isAncestorOf(one):
                continue
            if _behind(one, other) or not place.intersects(there):
                continue
            yield f"{_name(one)} at {_numbers(place)} overlaps {_name(other)} at {_numbers(there)}"


def _seen_place(widget: QWidget, top: QWidget) -> QRect:
    """In ``top``; without what a scroll area has beyond its edge."""
    place = QRect(widget.mapTo(top, QPoint(0, 0)), widget.size())
    parent = widget.parentWidget()
    while parent is not None and parent is not top:
        place &= QRect(parent.mapTo(top, QPoint(0, 0)), parent.size())
        parent = parent.parentWidget()
    return place


def _behind(one: QWidget, other: QWidget) -> bool:
    """Whether one of them lies over the other on purpose: words in an empty plot or list."""
    return _lets_clicks_through(one) or _lets_clicks_through(other)


def _lets_clicks_through(widget: QWidget) -> bool:
    through = Qt.WidgetAttribute.WA_TransparentForMouseEvents
    parent = widget.parentWidget()
    return widget.testAttribute(through) or (parent is not None and _lets_clicks_through(parent))


def _name(widget: QWidget) -> str:
    return widget.objectName() or widget.accessibleName() or type(widget).__name__


def _numbers(place: QRect) -> str:
    return f"{place.x()},{place.y()} {place.width()} x {place.height()}"
