"""Under the model list: where to drop a file, or how far the sample model is built.

One place for both, so that nothing moves when building begins or ends. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QStackedWidget, QWidget

from moelauncher.gui import theme as look
from moelauncher.gui.controls.progress_line import ProgressLine
from moelauncher.gui.library.drop_hint import DropHint


class ModelListFoot(QStackedWidget):
    """The drop box; while the sample is built, its progress.

    Signals:
        cancel_requested(): stop building.
    """

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.drop_hint = DropHint(self.tr("Drop a GGUF or a folder here"), self)
        self.addWidget(self.drop_hint)
        self.addWidget(self._make_progress())
        self.setFixedHeight(self.drop_hint.sizeHint().height())

    def set_under_list(self, under_list: bool) -> None:
        """Be small where models are listed."""
        self.drop_hint.set_under_list(under_list)
        self.setFixedHeight(self.drop_hint.sizeHint().height())

    def set_progress(self, fraction: float | None) -> None:
        """How much of the sample model is built, 0..1; None when it is not being built."""
        building = fraction is not None
        self.setCurrentIndex(1 if building else 0)
        text = self.tr("Building the sample model") if building else ""
        self._progress.set_progress(text, fraction)

    def _make_progress(self) -> QWidget:
        page = QWidget(self)
        self._progress = ProgressLine(page)
        self._progress.setObjectName("demoProgress")
        cancel = QPushButton(self.tr("Cancel"), page)
        cancel.setObjectName("demoCancelButton")
        cancel.setToolTip(self.tr("Stop building the sample model; nothing half-built is kept"))
        cancel.clicked.connect(self.cancel_requested)
        row = QHBoxLayout(page)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(look.GRID)
        row.addWidget(self._progress, 1)
        row.addWidget(cancel)
        return page
