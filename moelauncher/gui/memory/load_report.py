"""The load report: what was planned, what llama.cpp allocated, what the meters saw."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.memory.load_comparison import LoadComparison
from moelauncher.core.units import MIB
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.steady_label import SteadyLabel
from moelauncher.gui.theme import GRID, PANE_MARGIN, font, set_tone, theme

_ROW_HEIGHT = 26


class LoadReportDialog(QDialog):
    """A table, a sentence above it, and a text to copy. Not modal."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("loadReport")
        self.setWindowTitle(self.tr("Load report"))
        self._text = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, PANE_MARGIN, PANE_MARGIN, PANE_MARGIN)
        column.setSpacing(GRID)
        self.verdict = SteadyLabel(2, font("body"))
        self.verdict.setObjectName("loadReportVerdict")
        self.table = QTableWidget(0, 5)
        self.table.setObjectName("loadReportTable")
        self.table.setAccessibleName(self.tr("Planned and real memory of this load"))
        self.table.setHorizontalHeaderLabels(
            [
                self.tr("Device"),
                self.tr("Memory"),
                self.tr("Planned MiB"),
                self.tr("Real MiB"),
                self.tr("Difference MiB"),
            ]
        )
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.table.setShowGrid(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(_ROW_HEIGHT)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        for place in range(self.table.columnCount()):
            heading = self.table.horizontalHeaderItem(place)
            if heading is not None:
                heading.setTextAlignment(_side(place))
        self.table.setFont(font("small", figures=True))
        self.copy = QPushButton(self.tr("Copy report"))
        self.copy.setObjectName("copyLoadReportButton")
        self.copy.clicked.connect(lambda: QApplication.clipboard().setText(self._text))
        close = QPushButton(self.tr("Close"))
        close.clicked.connect(self.close)
        for button in (self.copy, close):
            button.setAutoDefault(False)
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(close)
        self._guesses = plain_label(self.tr("~: planned by an estimate"), "muted")
        self._guesses.setFont(font("small"))
        column.addWidget(self.verdict)
        column.addWidget(self.table, 1)
        column.addWidget(self._guesses)
        column.addLayout(row)
        self.resize(640, 420)

    def set_comparison(self, comparison: LoadComparison, text: str) -> None:
        """Show ``comparison``; ``text`` is what Copy gives."""
        self._text = text
        self._guesses.setVisible(any(row.source == "estimate" for row in comparison.rows))
        if comparison.wrong:
            set_tone(self.verdict, "bad")
            self.verdict.set_text(
                self.tr(
                    "llama.cpp allocated something else than was planned. That is a fault of this "
                    "program: please copy this report and send it to its makers."
                )
            )
        else:
            set_tone(self.verdict, "")
            self.verdict.set_text(
                self.tr("llama.cpp allocated what was planned, on every device and of every kind.")
            )
        lines = [
            (
                row.device,
                self._kind_name(row.kind),
                _mib(row.planned_bytes),
                self.tr("mapped file") if row.real_bytes is None else _mib(row.real_bytes),
                _difference(row.difference_bytes, row.source == "estimate"),
                row.wrong,
            )
            for row in comparison.rows
        ]
        for device in comparison.devices:
            measured = device.measured_bytes
            lines.append(
                (
                    device.device,
                    self.tr("all, by the meters"),
                    _mib(device.planned_bytes),
                    self.tr("not told") if measured is None else _mib(measured),
                    _difference(
                        None if measured is None else measured - device.planned_bytes, False
                    ),
                    False,
                )
            )
        self.table.setRowCount(len(lines))
        for number, (*cells, wrong) in enumerate(lines):
            for place, cell in enumerate(cells):
                self.table.setItem(number, place, self._cell(str(cell), place, bool(wrong)))

    def _cell(self, text: str, place: int, wrong: bool) -> QTableWidgetItem:
        item = QTableWidgetItem(text)
        item.setTextAlignment(_side(place))
        if wrong:
            item.setForeground(QBrush(theme().colors.bad))
        return item

    def _kind_name(self, kind: str) -> str:
        return {
            "weights": self.tr("weights"),
            "kv": self.tr("KV cache"),
            "recurrent": self.tr("recurrent state"),
            "compute": self.tr("compute buffers"),
        }[kind]


def _side(place: int) -> Qt.AlignmentFlag:
    """Figures stand at the right of their column, as does its heading."""
    side = Qt.AlignmentFlag.AlignRight if place >= 2 else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / MIB:,.2f}"


def _difference(n_bytes: int | None, estimated: bool) -> str:
    if n_bytes is None:
        return ""
    text = f"{n_bytes / MIB:+,.2f}" if abs(n_bytes) >= MIB // 200 else "0"
    return f"{text} ~" if estimated else text
