"""A row of controls that leaves out the ones that can be missed where it has no room for all.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QHBoxLayout, QWidget


class CrowdedRow(QObject):
    """Keeps ``row`` of ``owner`` within its width: hides of ``spare`` the first ones first.

    ``spare`` belongs to this row: nobody else shows or hides those widgets.
    """

    def __init__(self, row: QHBoxLayout, spare: Sequence[QWidget], owner: QWidget) -> None:
        super().__init__(owner)
        self._row = row
        self._owner = owner
        self._spare = tuple(spare)
        owner.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._make_room()
        return False

    def _make_room(self) -> None:
        # Not the row's own width: where it has no room, Qt lets it stick out.
        width = self._owner.width()
        layout = self._owner.layout()
        if layout is not None:
            margins = layout.contentsMargins()
            width -= margins.left() + margins.right()
        needed = -self._row.spacing()
        for number in range(self._row.count()):
            item = self._row.itemAt(number)
            widget = item.widget() if item is not None else None
            if item is None or widget is None:
                continue
            if widget in self._spare:
                needed += _width(widget) + self._row.spacing()
            elif not widget.isHidden():
                needed += item.sizeHint().width() + self._row.spacing()
        for widget in self._spare:
            fits = needed <= width
            if not fits:
                needed -= _width(widget) + self._row.spacing()
            if widget.isHidden() == fits:
                widget.setVisible(fits)


def _width(widget: QWidget) -> int:
    """What it wants, shown or hidden."""
    return max(widget.minimumWidth(), min(widget.maximumWidth(), widget.sizeHint().width()))
