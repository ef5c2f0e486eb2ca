"""The chat template of a model: its own, ChatML, or the user's, and the prompt it makes.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.chats.chatml import CHATML
from moelauncher.core.errors import LauncherError
from moelauncher.gui import theme as look
from moelauncher.gui.chats.code_block import code_font
from moelauncher.gui.controls.combo_box import ChevronComboBox
from moelauncher.gui.controls.ok_cancel import ok_cancel
from moelauncher.gui.controls.pane import plain_label

#: The preview follows when nothing was typed for so long.
REST_MS = 300
SHOWN_CHARS_LIMIT = 200_000


class TemplateDialog(QDialog):
    """After it was accepted, ``template`` is what stands in; None: the model's own.

    Signals:
        preview_wanted(object): render this template (str), None for the model's own.
    """

    preview_wanted = Signal(object)

    def __init__(self, own: str, stand_in: str | None, parent: QWidget | None = None) -> None:
        """``own`` is the template in the model's file, empty where it has none."""
        super().__init__(parent)
        self.setObjectName("templateDialog")
        self.setWindowTitle(self.tr("Chat template of this model"))
        self.resize(760, 600)
        self._own = own
        self.template = stand_in
        self.choice = ChevronComboBox(self)
        self.choice.setObjectName("templateChoice")
        self.choice.setAccessibleName(self.tr("Template"))
        usual = self.tr("The model's own") if own else self.tr("The model has none: ChatML")
        self.choice.addItem(usual, "own")
        self.choice.addItem(self.tr("ChatML"), "chatml")
        self.choice.addItem(self.tr("Written here"), "text")
        self.choice.setToolTip(
            self.tr("Which template turns the chat into a prompt; kept for this model.")
        )
        self.field = self._field("templateText", self.tr("Template, in Jinja"))
        self.preview = self._field("templatePreview", self.tr("The prompt that comes of it"))
        self.preview.setReadOnly(True)
        self.problem = plain_label("", "bad", self)
        self.problem.setObjectName("templateProblem")
        self.problem.setWordWrap(True)
        self.use_chatml = QPushButton(self.tr("Use ChatML"), self)
        self.use_chatml.setObjectName("useChatmlButton")
        self.use_chatml.setAutoDefault(False)
        self.use_chatml.clicked.connect(lambda: self._choose("chatml"))
        trouble = QHBoxLayout()
        trouble.addWidget(self.problem, 1)
        trouble.addWidget(self.use_chatml, 0, Qt.AlignmentFlag.AlignTop)
        halves = QSplitter(Qt.Orientation.Vertical, self)
        halves.addWidget(self._titled(self.tr("Template"), self.field))
        halves.addWidget(self._titled(self.tr("The prompt of this chat"), self.preview))
        halves.setChildrenCollapsible(False)
        halves.setProperty("between", "frames")
        halves.setHandleWidth(look.GRID)
        buttons = ok_cancel(self)
        column = QVBoxLayout(self)
        margin = look.PANE_MARGIN
        column.setContentsMargins(margin, margin, margin, margin)
        column.setSpacing(look.GRID)
        column.addWidget(self.choice)
        column.addWidget(halves, 1)
        column.addLayout(trouble)
        column.addWidget(buttons)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(lambda: self.preview_wanted.emit(self._chosen()))
        self.show_problem(None)
        kind = "own" if stand_in is None else "chatml" if stand_in == CHATML else "text"
        self.choice.setCurrentIndex(self.choice.findData(kind))
        self._fill(stand_in)
        self.choice.currentIndexChanged.connect(lambda _: self._fill(self.field.toPlainText()))
        self.field.textChanged.connect(self._typed)

    def show_preview(self, text: str | None) -> None:
        """The prompt; None where it took too long, or no model is loaded."""
        self.show_problem(None)
        if text is None:
            text = self.tr("No prompt came of it in time.")
        self.preview.setPlainText(text[:SHOWN_CHARS_LIMIT])

    def show_problem(self, error: LauncherError | None) -> None:
        """What the sandbox said of the template; None: nothing."""
        self.problem.setText("" if error is None else error.message)
        offers = error is not None and self.choice.currentData() != "chatml"
        self.use_chatml.setVisible(offers)
        if error is not None:
            self.preview.clear()

    def accept(self) -> None:
        """Take what is chosen; a template that does not work is said when it is used."""
        self.template = self._chosen()
        super().accept()

    def _chosen(self) -> str | None:
        kind = self.choice.currentData()
        if kind == "own":
            return None
        return CHATML if kind == "chatml" else self.field.toPlainText()

    def _choose(self, kind: str) -> None:
        self.choice.setCurrentIndex(self.choice.findData(kind))

    def _fill(self, text: str | None) -> None:
        """Show the template that is chosen; one's own begins with what was shown before."""
        kind = self.choice.currentData()
        shown = {"own": self._own or CHATML, "chatml": CHATML}.get(str(kind), text or self._own)
        self.field.blockSignals(True)
        if self.field.toPlainText() != shown:
            self.field.setPlainText(shown)
        self.field.blockSignals(False)
        self._rest.start()

    def _typed(self) -> None:
        """Whoever types writes a template of their own."""
        if self.choice.currentData() != "text":
            self._choose("text")
        self._rest.start()

    def _field(self, name: str, spoken: str) -> QPlainTextEdit:
        field = QPlainTextEdit(self)
        field.setObjectName(name)
        field.setAccessibleName(spoken)
        field.setFont(code_font())
        field.setTabChangesFocus(True)
        return field

    def _titled(self, title: str, field: QPlainTextEdit) -> QWidget:
        whole = QWidget(self)
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(look.HALF)
        column.addWidget(plain_label(title, "muted", whole))
        column.addWidget(field, 1)
        return whole
