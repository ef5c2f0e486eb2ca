"""Get a model: a box for a link, a table of what can be had, and how far a download is.

Values come in by methods, wishes go out by signals; it touches no file and no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.library.hub_files import HubChoice
from moelauncher.core.units import format_bytes
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.progress_line import ProgressLine
from moelauncher.gui.theme import GRID, PANE_MARGIN, font, repolish, set_tone, theme

_NAME, _ABOUT, _SIZE, _VERDICT = range(4)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class _InkKept(QStyledItemDelegate):
    """A selected row keeps its colours: they say whether a model fits."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        ink = index.data(Qt.ItemDataRole.ForegroundRole)
        if ink is not None:
            option.palette.setBrush(QPalette.ColorRole.HighlightedText, ink)


@dataclass(frozen=True)
class Offer:
    """One row. ``choice`` None: not looked at yet, or not to be had."""

    name: str
    about: str = ""
    choice: HubChoice | None = None
    verdict: str = ""
    level: str = ""


class DownloadDialog(QDialog):
    """Hidden, not closed, so that a download is still to be seen when it is opened again.

    Signals:
        look_requested(str): list what the text in the box names; "" lists the suggestions.
        download_requested(object): fetch this HubChoice.
        pause_requested(), resume_requested(), cancel_requested(): of the running download.
    """

    look_requested = Signal(str)
    download_requested = Signal(object)
    pause_requested = Signal()
    resume_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("downloadDialog")
        self.setWindowTitle(self.tr("Get a model"))
        self.resize(QSize(920, 520))
        self.setMinimumSize(QSize(520, 360))
        self._offers: list[Offer] = []
        self._busy = False
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, PANE_MARGIN, PANE_MARGIN, PANE_MARGIN)
        column.setSpacing(GRID + 4)
        column.addLayout(self._make_box())
        self.note = plain_label("", "muted")
        self.note.setObjectName("hubNote")
        self.note.setWordWrap(True)
        self.note.setMinimumHeight(2 * self.note.fontMetrics().lineSpacing())
        self.note.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        column.addWidget(self.note)
        self.table = self._make_table()
        column.addWidget(self.table, 1)
        column.addLayout(self._make_foot())
        theme().changed.connect(self._fill)
        self._update_buttons()

    # Values in

    def set_note(self, text: str, tone: str = "muted") -> None:
        """What is going on, or what went wrong and what to do."""
        self.note.setText(text)
        set_tone(self.note, tone)

    def set_offers(self, offers: Sequence[Offer]) -> None:
        """Show these rows; a selection stays on its row."""
        self._offers = list(offers)
        self._fill()

    def set_offer(self, number: int, offer: Offer) -> None:
        """One row is known better now."""
        if number < len(self._offers):
            self._offers[number] = offer
            self._fill_row(number)
            self._update_buttons()

    def offers(self) -> list[Offer]:
        """What is shown."""
        return list(self._offers)

    def set_download(self, text: str, fraction: float | None, *, paused: bool) -> None:
        """A download goes on, or is paused."""
        self._busy = True
        self.progress.set_progress(text, 0.0 if fraction is None else fraction)
        self.pause.setText(self.tr("Resume") if paused else self.tr("Pause"))
        self.pause.setProperty("paused", paused)
        self._update_buttons()

    def set_idle(self) -> None:
        """No download is going on."""
        self._busy = False
        self.progress.set_progress("", None)
        self._update_buttons()

    # Parts

    def _make_box(self) -> QHBoxLayout:
        self.box = QLineEdit()
        self.box.setObjectName("hubBox")
        self.box.setAccessibleName(self.tr("Repository or link"))
        self.box.setPlaceholderText(self.tr("org/name, org/name:Q4_K_M, or a Hugging Face link"))
        self.box.setClearButtonEnabled(True)
        self.box.returnPressed.connect(self._look)
        self.look = QPushButton(self.tr("Look up"))
        self.look.setObjectName("hubLookButton")
        self.look.setAutoDefault(False)
        self.look.clicked.connect(self._look)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        row.addWidget(self.box, 1)
        row.addWidget(self.look)
        return row

    def _make_table(self) -> QTableWidget:
        table = QTableWidget(0, 4)
        table.setItemDelegate(_InkKept(table))
        table.setObjectName("hubTable")
        table.setAccessibleName(self.tr("What can be downloaded"))
        table.setHorizontalHeaderLabels([self.tr("Model"), "", "", self.tr("On this machine")])
        size = QTableWidgetItem(self.tr("Size"))
        size.setTextAlignment(_RIGHT)
        table.setHorizontalHeaderItem(_SIZE, size)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(32)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(_NAME, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(_ABOUT, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(_SIZE, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(_VERDICT, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(_SIZE, 96)
        header.resizeSection(_VERDICT, 280)
        table.itemSelectionChanged.connect(self._update_buttons)
        return table

    def _make_foot(self) -> QHBoxLayout:
        self.progress = ProgressLine()
        self.progress.setObjectName("hubProgress")
        self.pause = QPushButton(self.tr("Pause"))
        self.pause.setObjectName("hubPauseButton")
        self.pause.clicked.connect(self._pause_or_resume)
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setObjectName("hubCancelButton")
        self.cancel.setToolTip(self.tr("Stop, and delete what was fetched"))
        self.cancel.clicked.connect(self.cancel_requested)
        self.download = QPushButton(self.tr("Download"))
        self.download.setObjectName("hubDownloadButton")
        self.download.clicked.connect(self._download)
        close = QPushButton(self.tr("Close"))
        close.setObjectName("hubCloseButton")
        close.clicked.connect(self.hide)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        row.addWidget(self.progress, 1)
        for button in (self.pause, self.cancel, self.download, close):
            button.setAutoDefault(False)
            row.addWidget(button)
        return row

    # Inside

    def _look(self) -> None:
        self.look_requested.emit(self.box.text())

    def _selected(self) -> HubChoice | None:
        row = self.table.currentRow() if self.table.selectedItems() else -1
        return self._offers[row].choice if 0 <= row < len(self._offers) else None

    def _download(self) -> None:
        choice = self._selected()
        if choice is not None:
            self.download_requested.emit(choice)

    def _pause_or_resume(self) -> None:
        if self.pause.property("paused"):
            self.resume_requested.emit()
        else:
            self.pause_requested.emit()

    def _update_buttons(self) -> None:
        self.download.setEnabled(not self._busy and self._selected() is not None)
        repolish(self.download, "kind", "" if self._busy else "primary")
        self.pause.setVisible(self._busy)
        self.cancel.setVisible(self._busy)

    def _fill(self) -> None:
        self.table.setRowCount(len(self._offers))
        for number in range(len(self._offers)):
            self._fill_row(number)
        self._update_buttons()

    def _fill_row(self, number: int) -> None:
        offer, colors = self._offers[number], theme().colors
        tone = {"good": colors.good, "warn": colors.warn, "bad": colors.bad}.get(offer.level)
        size = "" if offer.choice is None else format_bytes(offer.choice.size_bytes)
        texts = (
            (offer.name, colors.text),
            (offer.about, colors.muted),
            (size, colors.muted),
            (offer.verdict, tone or colors.muted),
        )
        for column, (text, ink) in enumerate(texts):
            item = QTableWidgetItem(text)
            if column == _SIZE:
                item.setTextAlignment(_RIGHT)
            item.setForeground(QColor(ink))
            item.setFont(font("body", figures=True))
            item.setToolTip("")
            self.table.setItem(number, column, item)
