"""A title, a number field and a slider that always agree."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.quiet_spin_box import QuietSpinBox
from moelauncher.gui.memory.expert_slider import ExpertSlider
from moelauncher.gui.theme import GRID, HALF, font


class NumberLine(QWidget):
    """The slider over a model's layers, with its title and number field.

    Signals:
        moved: the user chose another number.
    """

    moved = Signal(int)

    def __init__(self, title: str, tip: str, slider_name: str, spin_name: str) -> None:
        """``tip``: what the number means and does, for the tooltip."""
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(HALF)
        row = QHBoxLayout()
        row.setSpacing(GRID)
        self.title = plain_label(title)
        self.title.setFont(font("body", bold=True))
        self.title.setToolTip(tip)
        self.spin = QuietSpinBox()
        self.spin.setObjectName(spin_name)
        self.spin.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.spin.setFixedWidth(64)
        self.total = plain_label("", "muted")
        self.total.setFont(font("body", figures=True))
        # Room for the number from the start, so that the field beside it never moves.
        width = self.total.fontMetrics().horizontalAdvance(self.tr("of {last}").format(last=88))
        self.total.setMinimumWidth(width)
        row.addWidget(self.title)
        row.addStretch(1)
        row.addWidget(self.spin)
        row.addWidget(self.total)
        self.slider = ExpertSlider()
        self.slider.setObjectName(slider_name)
        for field in (self.spin, self.slider):
            field.setAccessibleName(title)
            field.setToolTip(tip)
            field.setRange(0, 0)
        column.addLayout(row)
        column.addWidget(self.slider)
        self.slider.valueChanged.connect(self._slid)
        self.spin.valueChanged.connect(self._typed)

    def set_line(self, last: int, value: int, enabled: bool) -> None:
        """Show a range and a value without telling anybody."""
        for field in (self.slider, self.spin):
            field.blockSignals(True)
            # Only what differs: setting the same value again would undo what is being typed.
            if field.maximum() != last:
                field.setRange(0, last)
            if field.value() != value:
                field.setValue(value)
            field.blockSignals(False)
            field.setEnabled(enabled)
        self.slider.update()
        self.total.setText(self.tr("of {last}").format(last=last or "–"))

    def _slid(self, value: int) -> None:
        self.spin.blockSignals(True)
        self.spin.setValue(value)
        self.spin.blockSignals(False)
        self.moved.emit(value)

    def _typed(self, value: int) -> None:
        self.slider.setValue(value)
