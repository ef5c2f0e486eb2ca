"""The head of a pane at the left: its title, and buttons at the right.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QPushButton, QToolButton, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.controls.crowded_row import CrowdedRow
from moelauncher.gui.controls.pane import plain_label


class PaneHead(QWidget):
    """One row. Buttons come in by :meth:`add_text` and :meth:`add_sign`, in reading order."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(look.HEADER_HEIGHT)
        label = plain_label(title, parent=self)
        label.setFont(look.font("body", bold=True))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(look.PANE_MARGIN, 0, look.PANE_MARGIN, 0)
        self._row.setSpacing(look.GRID)
        self._row.addWidget(label)
        self._row.addStretch(1)
        # The buttons say what the pane is too.
        CrowdedRow(self._row, (label,), self)

    def add_text(self, name: str, text: str, tip: str) -> QPushButton:
        """A button with words on it; ``name`` is its objectName."""
        button = QPushButton(text, self)
        self._add(button, name, tip)
        return button

    def add_sign(
        self, name: str, sign: str, spoken: str, tip: str, *, first: bool = False
    ) -> QToolButton:
        """A button with one sign on it, which a screen reader calls ``spoken``."""
        button = QToolButton(self)
        button.setText(sign)
        button.setAccessibleName(spoken)
        button.setFixedSize(look.CONTROL_HEIGHT, look.CONTROL_HEIGHT)
        self._add(button, name, tip, first=first)
        return button

    def _add(self, button: QAbstractButton, name: str, tip: str, *, first: bool = False) -> None:
        button.setObjectName(name)
        button.setToolTip(tip)
        if first:
            self._row.insertWidget(0, button)
        else:
            self._row.addWidget(button)
