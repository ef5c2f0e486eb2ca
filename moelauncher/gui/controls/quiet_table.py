"""A table to read: no grid, no editing, figures at the right of their columns. GUI thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from moelauncher.gui.controls.plain_tip import plain_tip
from moelauncher.gui.theme import GRID, font, theme

ROW_HEIGHT = 26


class QuietTable(QTableWidget):
    """Columns as wide as what they hold; column ``wide`` takes the rest.

    ``empty_text`` stands where no row is yet.
    """

    def __init__(
        self,
        titles: Sequence[str],
        *,
        wide: int,
        figures: Collection[int] = (),
        selectable: bool = False,
        empty_text: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(0, len(titles), parent)
        self._empty_text = empty_text
        self._figures = frozenset(figures)
        self._wide = wide
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(
            QAbstractItemView.SelectionMode.SingleSelection
            if selectable
            else QAbstractItemView.SelectionMode.NoSelection
        )
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(wide, QHeaderView.ResizeMode.Stretch)
        self.setFont(font("small", figures=True))
        for column, title in enumerate(titles):
            item = QTableWidgetItem(title)
            item.setTextAlignment(self._side(column))
            self.setHorizontalHeaderItem(column, item)

    def set_row(self, row: int, cells: Sequence[str]) -> None:
        """Fill a row; the wide column tells the rest of its text to the pointer."""
        for column, text in enumerate(cells):
            item = QTableWidgetItem(text)
            item.setTextAlignment(self._side(column))
            if column == self._wide:
                item.setToolTip(plain_tip(text))
            self.setItem(row, column, item)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.rowCount() or not self._empty_text:
            return
        painter = QPainter(self.viewport())
        painter.setFont(font("body"))
        painter.setPen(theme().colors.muted)
        area = self.viewport().rect().adjusted(2 * GRID, GRID, -2 * GRID, -GRID)
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(area, flags, self._empty_text)

    def _side(self, column: int) -> Qt.AlignmentFlag:
        right = column in self._figures
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter
