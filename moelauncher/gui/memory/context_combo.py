"""The context size: round numbers to choose from, any number to type."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from moelauncher.core.units import format_tokens, parse_tokens
from moelauncher.gui.controls.combo_box import ChevronComboBox
from moelauncher.gui.theme import font

SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
SMALLEST = 256
LARGEST = 1 << 30


class ContextCombo(ChevronComboBox):
    """Holds a context size in tokens. What cannot be read falls back to the last good value.

    Signals:
        size_changed: the new size in tokens.
    """

    size_changed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("contextCombo")
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setFont(font("body", figures=True))
        self.setAccessibleName(self.tr("Context size in tokens"))
        self._size = SIZES[0]
        self._maximum: int | None = None
        self._line = QLineEdit()
        self._line.setAcceptDrops(False)
        self._line.setAccessibleName(self.accessibleName())
        self._line.editingFinished.connect(self._take)
        self.setLineEdit(self._line)
        self._fill()
        self.activated.connect(self._take)
        self.setToolTip(
            self.tr("Tokens that the model can look back on. Type any number, such as 24k.")
        )

    @property
    def size_tokens(self) -> int:
        """The size that is set."""
        return self._size

    def set_size(self, n_ctx: int) -> None:
        """Show ``n_ctx`` without telling anybody; what is being typed stays."""
        if n_ctx == self._size and self._line.isModified():
            return
        self._size = n_ctx
        self.setEditText(self._text_of(n_ctx))

    def choose_at_least(self, n_ctx: int) -> bool:
        """Choose the smallest listed size of ``n_ctx`` or more, else the largest, and tell it.

        False where that would not be more than now.
        """
        size = next((size for size in self.sizes if size >= n_ctx), max(self.sizes))
        if size <= self._size:
            return False
        self._size = size
        self.setEditText(self._text_of(size))
        self.size_changed.emit(size)
        return True

    def set_maximum(self, n_ctx: int | None) -> None:
        """What the model was trained for: the last entry of the list. None where unknown."""
        if n_ctx != self._maximum:
            self._maximum = n_ctx
            self._fill()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes in the list."""
        if self._maximum is None:
            return SIZES
        return (*(size for size in SIZES if size < self._maximum), self._maximum)

    def _fill(self) -> None:
        self.clear()
        for size in self.sizes:
            self.addItem(self._text_of(size), size)
            if size == self._maximum:
                tip = self.tr("{tokens}: the most that the model was trained for")
                self.setItemData(
                    self.count() - 1,
                    tip.format(tokens=format_tokens(size)),
                    Qt.ItemDataRole.ToolTipRole,
                )
        self.setEditText(self._text_of(self._size))

    def _text_of(self, n_ctx: int) -> str:
        return QLocale().toString(n_ctx)

    def _take(self) -> None:
        typed = parse_tokens(self.currentText())
        # Beyond what the model was trained for is the user's to try; the pane warns of it.
        size = self._size if typed is None else min(max(SMALLEST, typed), LARGEST)
        self.setEditText(self._text_of(size))
        if size != self._size:
            self._size = size
            self.size_changed.emit(size)
