"""The first page that somebody sees: where models are, a sample to begin with, and the GPU.

It lies over the window until it is put away, and comes back only when it is asked for. Values
come in by methods, wishes go out by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from moelauncher.core.verdict import Verdict
from moelauncher.gui import theme as look
from moelauncher.gui.controls.pane import plain_label, rule
from moelauncher.gui.library.verdict_list import VerdictList

WIDTH = 560


class WelcomePage(QWidget):
    """Covers its parent.

    Signals:
        folder_requested(), model_requested(), sample_requested(), doctor_requested(): do that.
        closed(): it was put away.
    """

    folder_requested = Signal()
    model_requested = Signal()
    sample_requested = Signal()
    doctor_requested = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._covered = parent
        self.setObjectName("welcomePage")
        self.setAccessibleName(self.tr("First steps"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        title = plain_label(self.tr("Welcome to MoE Launcher"), "", self)
        title.setFont(look.font("title", bold=True))
        what = self._text(
            self.tr(
                "It runs language models that are larger than your graphics card. A “Mixture of "
                "Experts” (MoE) is made of many small parts, the experts, and each word needs "
                "only a few of them: so most may stay in RAM. You choose how many."
            )
        )
        card = QWidget(self)
        card.setFixedWidth(WIDTH)
        column = QVBoxLayout(card)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(look.PANE_MARGIN)
        column.addWidget(title)
        column.addWidget(what)
        column.addWidget(rule(card))
        column.addLayout(self._models())
        column.addLayout(self._sample())
        column.addWidget(rule(card))
        column.addLayout(self._gpu())
        column.addWidget(rule(card))
        self.start = QPushButton(self.tr("Start"), card)
        self.start.setObjectName("welcomeStartButton")
        self.start.setProperty("kind", "primary")
        self.start.setMinimumWidth(120)
        self.start.clicked.connect(self.put_away)
        again = plain_label(self.tr("This page stays in the menu, under “First steps”."), "muted")
        again.setFont(look.font("small"))
        row = QHBoxLayout()
        row.addWidget(again, 1)
        row.addWidget(self.start)
        column.addLayout(row)
        # Stretches, not an alignment: that would not ask how high the wrapped text is.
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(card)
        middle.addStretch(1)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addLayout(middle)
        outer.addStretch(3)
        self.set_model_count(0, scanning=True)
        parent.installEventFilter(self)
        look.theme().changed.connect(self.update)
        self.hide()

    def open(self) -> None:
        """Lie over the parent."""
        self.setGeometry(self._covered.rect())
        self.show()
        self.raise_()
        self.start.setFocus(Qt.FocusReason.OtherFocusReason)

    def put_away(self) -> None:
        """Give the window back."""
        if not self.isHidden():
            self.hide()
            self.closed.emit()

    def set_model_count(self, n_models: int, *, scanning: bool) -> None:
        """How many models were found until now."""
        if n_models == 1:
            text = self.tr("1 model was found.")
        elif n_models:
            text = self.tr("{n} models were found.").format(n=n_models)
        elif scanning:
            text = self.tr("Looking for models that are here already.")
        else:
            text = self.tr("No GGUF file was found in the usual places.")
        self.found.setText(text)

    def set_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """What the doctor says of the GPUs at first glance."""
        self.gpu.set_verdicts(verdicts)
        self._waiting.hide()
        self.gpu.show()

    # Parts

    def _models(self) -> QHBoxLayout:
        self.found = plain_label("", "muted", self)
        self.found.setObjectName("welcomeFound")
        folder = self._button(self.tr("Choose a folder…"), "welcomeFolderButton")
        folder.clicked.connect(self.folder_requested)
        fetch = self._button(self.tr("Get a model…"), "welcomeGetButton")
        fetch.clicked.connect(self.model_requested)
        return self._row(self.tr("Your models"), self.found, folder, fetch)

    def _sample(self) -> QHBoxLayout:
        text = plain_label(self.tr("Small, made on this machine in seconds."), "muted", self)
        build = self._button(self.tr("Try the sample"), "welcomeSampleButton")
        build.clicked.connect(self._build_sample)
        return self._row(self.tr("A sample to begin with"), text, build)

    def _gpu(self) -> QVBoxLayout:
        heading = plain_label(self.tr("Your graphics card"), "", self)
        heading.setFont(look.font("body", bold=True))
        doctor = self._button(self.tr("Doctor…"), "welcomeDoctorButton")
        doctor.clicked.connect(self.doctor_requested)
        row = QHBoxLayout()
        row.addWidget(heading, 1)
        row.addWidget(doctor)
        self._waiting = plain_label(self.tr("Asking the drivers."), "muted", self)
        self.gpu = VerdictList(self)
        self.gpu.setObjectName("welcomeGpu")
        self.gpu.hide()
        # Room for a verdict with advice from the start on: the page must not move when it comes.
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        for widget in (self._waiting, self.gpu):
            widget.setMinimumHeight(3 * self._waiting.fontMetrics().height() + look.HALF)
        column = QVBoxLayout()
        column.setSpacing(look.GRID)
        column.addLayout(row)
        column.addWidget(self._waiting)
        column.addWidget(self.gpu)
        return column

    def _row(self, title: str, text: QLabel, *buttons: QPushButton) -> QHBoxLayout:
        heading = plain_label(title, "", self)
        heading.setFont(look.font("body", bold=True))
        words = QVBoxLayout()
        words.setSpacing(look.HALF)
        words.addWidget(heading)
        words.addWidget(text)
        row = QHBoxLayout()
        row.setSpacing(look.GRID)
        row.addLayout(words, 1)
        for button in buttons:
            row.addWidget(button)
        return row

    def _button(self, text: str, name: str) -> QPushButton:
        button = QPushButton(text, self)
        button.setObjectName(name)
        button.setAutoDefault(False)
        return button

    def _text(self, text: str) -> QLabel:
        label = plain_label(text, "muted", self)
        label.setWordWrap(True)
        return label

    def _build_sample(self) -> None:
        self.sample_requested.emit()
        # Its progress is in the list, under this page.
        self.put_away()

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._covered:
            self.setGeometry(self._covered.rect())
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.put_away()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(event.rect(), look.theme().colors.window)
