"""A pane of the right-hand side: a title in capitals, room at its right, content below."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from moelauncher.gui.theme import CHIP_HEIGHT, GRID, PANE_MARGIN, section_font, set_tone


def plain_label(text: str = "", tone: str = "", parent: QWidget | None = None) -> QLabel:
    """A label that never takes its text for HTML."""
    label = QLabel(parent)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    if tone:
        set_tone(label, tone)
    return label


def rule(parent: QWidget | None = None) -> QFrame:
    """A horizontal line of one pixel."""
    line = QFrame(parent)
    line.setProperty("line", True)
    line.setFixedHeight(1)
    return line


def add_shortcut(widget: QWidget, key: str) -> None:
    """Alt and ``key`` click a button, or put the focus on a field; the tooltip tells.

    Not by mnemonics: Fusion underlines them all the time.
    """
    sequence = QKeySequence(f"Alt+{key}")
    if isinstance(widget, QAbstractButton):
        widget.setShortcut(sequence)
    else:
        shortcut = QShortcut(sequence, widget)
        shortcut.activated.connect(lambda: widget.setFocus(Qt.FocusReason.ShortcutFocusReason))
    spoken = sequence.toString(QKeySequence.SequenceFormat.NativeText)
    widget.setToolTip(f"{widget.toolTip()} ({spoken})".strip())


class Pane(QWidget):
    """``title_row`` takes widgets to the right of the title, ``body`` takes the content."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(title)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(PANE_MARGIN, GRID, PANE_MARGIN, GRID)
        outer.setSpacing(GRID)
        self.title_row = QHBoxLayout()
        self.title_row.setSpacing(GRID)
        self.title_label = plain_label(title, "muted")
        self.title_label.setFont(section_font())
        self.title_label.setMinimumHeight(CHIP_HEIGHT)
        self.title_row.addWidget(self.title_label)
        outer.addLayout(self.title_row)
        self.body = QVBoxLayout()
        self.body.setSpacing(GRID)
        outer.addLayout(self.body, 1)
