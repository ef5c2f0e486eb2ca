"""The log pane: what llama.cpp and the program said, newest last, bounded."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from moelauncher.gui.theme import GRID, PANE_MARGIN, font, theme

MAXIMUM_LINES = 5000


class LogPane(QWidget):
    """Lies at the window's foot, hidden until it is asked for.

    Signals:
        folder_requested: show the folder that holds the log file.
    """

    folder_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("logPane")
        self.setAccessibleName(self.tr("Log"))
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, GRID, PANE_MARGIN, GRID)
        column.setSpacing(GRID)
        self.text = QPlainTextEdit()
        self.text.setObjectName("logText")
        self.text.setAccessibleName(self.tr("Log lines"))
        self.text.setReadOnly(True)
        self.text.setMaximumBlockCount(MAXIMUM_LINES)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setPlaceholderText(self.tr("What llama.cpp says appears here."))
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        fixed.setPixelSize(font("small").pixelSize())
        fixed.setStyleHint(QFont.StyleHint.Monospace)
        self.text.setFont(fixed)
        column.addWidget(self.text, 1)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        self.copy = self._button(self.tr("Copy all"), "copyLogButton")
        self.folder = self._button(self.tr("Open folder"), "openLogFolderButton")
        hide = self._button(self.tr("Close"), "closeLogButton")
        row.addWidget(self.copy)
        row.addWidget(self.folder)
        row.addStretch(1)
        row.addWidget(hide)
        column.addLayout(row)
        self.copy.clicked.connect(self._copy_all)
        self.folder.clicked.connect(self.folder_requested)
        hide.clicked.connect(self.hide)
        self.hide()

    def _button(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(name)
        button.setProperty("kind", "chip")
        button.setAutoDefault(False)
        return button

    def append(self, level: str, text: str) -> None:
        """Add lines. ``level``: "debug", "info", "warning", "error"; the view follows the end
        only where it already stood there."""
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 2
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        for line in text.rstrip("\n").split("\n"):
            if not self.text.document().isEmpty():
                cursor.insertBlock()
            # The level is written out too: colour alone must not carry it.
            prefix = {"warning": "W ", "error": "E "}.get(level, "  ")
            cursor.insertText(prefix + line, self._format(level))
        if follows:
            bar.setValue(bar.maximum())

    def _format(self, level: str) -> QTextCharFormat:
        colors = theme().colors
        color: QColor = {
            "debug": colors.muted,
            "warning": colors.warn,
            "error": colors.bad,
        }.get(level, colors.text)
        result = QTextCharFormat()
        result.setForeground(color)
        return result

    def _copy_all(self) -> None:
        QApplication.clipboard().setText(self.text.toPlainText())
