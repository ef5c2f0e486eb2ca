"""The folded part of the placement pane: what few people change."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QWidget

from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.program import settings
from moelauncher.core.translate import tr
from moelauncher.gui.controls.check_box import TickBox
from moelauncher.gui.controls.combo_box import ChevronComboBox
from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.controls.quiet_spin_box import QuietSpinBox
from moelauncher.gui.theme import GRID, font

UBATCHES = (8, 32, 64, 128, 256, 512, 1024, 2048)
FIELD_MINIMUM = 64


class MoreOptions(QWidget):
    """Threads, prompt batch, mapped files, and which expert layers go to the CPU first.

    Signals:
        changed: the user changed one of them.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(GRID)
        grid.setVerticalSpacing(GRID)
        # The words on the left need more room than the numbers on the right.
        grid.setColumnStretch(1, 5)
        grid.setColumnStretch(3, 4)

        self.threads = QuietSpinBox()
        self.threads.setObjectName("threadsSpin")
        self.threads.setRange(0, MAX_THREADS)
        self.threads.setSpecialValueText(self.tr("auto"))
        self.threads.setToolTip(tr(settings.N_THREADS.help))
        self.ubatch = ChevronComboBox()
        self.ubatch.setObjectName("ubatchCombo")
        self.ubatch.setFont(font("body", figures=True))
        for n in UBATCHES:
            self.ubatch.addItem(str(n), n)
        self.ubatch.setCurrentIndex(self.ubatch.findData(512))
        self.ubatch.setToolTip(tr(settings.N_UBATCH.help))
        self.which = ChevronComboBox()
        self.which.setObjectName("whichCombo")
        self.which.addItem(self.tr("first"), "first")
        self.which.addItem(self.tr("last"), "last")
        self.which.setToolTip(
            self.tr(
                "Which expert layers go to the CPU first. “First” is what llama.cpp's "
                "--n-cpu-moe does, “last” what its --fit does."
            )
        )
        self.mmap = TickBox(self.tr("Map model files"))
        self.mmap.setObjectName("mmapCheck")
        self.mmap.setChecked(True)
        self.mmap.setToolTip(tr(settings.USE_MMAP.help))

        labels = (
            (self.tr("Threads"), self.threads, 0, 0),
            (self.tr("Prompt batch"), self.ubatch, 0, 2),
            (self.tr("On the CPU"), self.which, 1, 0),
        )
        for field in (self.threads, self.ubatch, self.which):
            # In a narrow pane a long entry is cut; the list that opens shows all of it.
            field.setMinimumWidth(FIELD_MINIMUM)
        for text, field, row, column in labels:
            label = plain_label(text, "muted")
            label.setToolTip(field.toolTip())
            field.setAccessibleName(text)
            grid.addWidget(label, row, column)
            grid.addWidget(field, row, column + 1)
        grid.addWidget(self.mmap, 1, 2, 1, 2)

        self.threads.valueChanged.connect(self.changed)
        self.ubatch.activated.connect(self.changed)
        self.which.activated.connect(self.changed)
        self.mmap.clicked.connect(self.changed)

    def set_values(self, n_threads: int | None, n_ubatch: int, use_mmap: bool, which: str) -> None:
        """Show these without telling anybody."""
        if self.threads.value() != (n_threads or 0):
            self.threads.blockSignals(True)
            self.threads.setValue(n_threads or 0)
            self.threads.blockSignals(False)
        if self.ubatch.findData(n_ubatch) < 0:
            self.ubatch.addItem(str(n_ubatch), n_ubatch)
        self.ubatch.setCurrentIndex(self.ubatch.findData(n_ubatch))
        self.mmap.setChecked(use_mmap)
        self.which.setCurrentIndex(max(0, self.which.findData(which)))
