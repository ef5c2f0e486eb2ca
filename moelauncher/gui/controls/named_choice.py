"""A row of named things to choose from, with Save and Delete beside it. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QInputDialog, QPushButton, QSizePolicy, QWidget

from moelauncher.core.text_cleaning import display_name
from moelauncher.gui import theme as look
from moelauncher.gui.controls.combo_box import ChevronComboBox

NAME_CHARS = 60


class NamedChoice(QWidget):
    """Choices are (key, label, whether the user may delete it).

    Signals:
        chosen(str): the user chose this key.
        save_requested(str): keep what is there under this name (never blank).
        delete_requested(str): forget this key.
    """

    chosen = Signal(str)
    save_requested = Signal(str)
    delete_requested = Signal(str)

    def __init__(
        self, name: str, title: str, empty: str, ask: str, parent: QWidget | None = None
    ) -> None:
        """``title``: what a screen reader calls the choice, as a label beside the row is not its;
        ``empty``: what the first, keyless entry says; ``ask``: the question for a name.
        """
        super().__init__(parent)
        self._empty, self._ask = empty, ask
        self._deletable: frozenset[str] = frozenset()
        self.combo = ChevronComboBox(self)
        self.combo.setObjectName(name)
        self.combo.setAccessibleName(title)
        self.combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.combo.activated.connect(lambda _: self.chosen.emit(self.key))
        self.combo.currentIndexChanged.connect(lambda _: self._refresh())
        self.save = QPushButton(self.tr("Save as…"), self)
        self.save.setObjectName(f"{name}Save")
        self.save.clicked.connect(self._ask_name)
        self.delete = QPushButton(self.tr("Delete"), self)
        self.delete.setObjectName(f"{name}Delete")
        self.delete.clicked.connect(lambda: self.delete_requested.emit(self.key))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(look.GRID)
        row.addWidget(self.combo, 1)
        row.addWidget(self.save)
        row.addWidget(self.delete)
        self.setFocusProxy(self.combo)
        self.set_choices((), "")

    @property
    def key(self) -> str:
        """What is chosen; empty for the first entry."""
        return str(self.combo.currentData() or "")

    def set_choices(self, choices: Sequence[tuple[str, str, bool]], key: str) -> None:
        """Offer these, ``key`` chosen; no signal comes of it."""
        self._deletable = frozenset(k for k, _, own in choices if own)
        self.combo.blockSignals(True)
        self.combo.clear()
        self.combo.addItem(self._empty, "")
        for one, label, _ in choices:
            self.combo.addItem(display_name(label), one)
        self.combo.setCurrentIndex(max(0, self.combo.findData(key)))
        self.combo.blockSignals(False)
        self._refresh()

    def _ask_name(self) -> None:
        asking = QInputDialog(self)
        asking.setObjectName("nameQuestion")
        asking.setWindowTitle(self.save.text())
        asking.setLabelText(self._ask)
        asking.setTextValue(self.combo.currentText() if self.key in self._deletable else "")
        asking.textValueSelected.connect(self._named)
        asking.finished.connect(asking.deleteLater)
        asking.open()

    def _named(self, text: str) -> None:
        name = " ".join(text.split())[:NAME_CHARS]
        if name:
            self.save_requested.emit(name)

    def _refresh(self) -> None:
        self.delete.setEnabled(self.key in self._deletable)
