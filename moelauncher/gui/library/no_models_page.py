"""What stands in place of the model list where there is nothing to list, and what to do then.

GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from moelauncher.gui import theme as look


class NoModelsPage(QWidget):
    """A sentence and buttons; what they do is connected by the pane."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = QLabel(self)
        self._text.setObjectName("modelListHint")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        look.set_tone(self._text, "muted")
        self.add_folder = QPushButton(self.tr("Add a folder…"), self)
        self.get_model = QPushButton(self.tr("Get a model…"), self)
        self.get_model.setObjectName("getModelButton")
        self.get_model.setToolTip(self.tr("Download one that fits this machine"))
        self.sample = QPushButton(self.tr("Build the sample model"), self)
        self.sample.setObjectName("demoButton")
        self.sample.setToolTip(self.tr("A small model made on this machine, to try the program"))
        self.show_all = QPushButton(self.tr("Show all models"), self)
        column = QVBoxLayout(self)
        column.setContentsMargins(look.PANE_MARGIN, look.GRID, look.PANE_MARGIN, look.GRID)
        column.setSpacing(look.GRID)
        for widget in (self._text, self.add_folder, self.get_model, self.sample, self.show_all):
            column.addWidget(widget)
        column.addStretch(1)
        self._column = column

    def minimumSizeHint(self) -> QSize:
        # Qt's own knows nothing of the lines that the text takes at this width, and the
        # buttons would be squeezed over each other in a low window.
        return QSize(0, self._column.totalMinimumHeightForWidth(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self.updateGeometry()

    def tell(self, words: str | None, scanning: bool) -> None:
        """``words`` that no model holds; None: there is no model at all (yet, ``scanning``)."""
        if words is not None:
            text = self.tr("No model has “{text}” in its name.").format(text=words)
        elif scanning:
            text = self.tr("Looking for models in your folders.")
        else:
            text = self.tr(
                "No models yet. Add a folder of GGUF files, get a model that fits, or try a "
                "small sample."
            )
        self._text.setText(text)
        for button in (self.add_folder, self.get_model, self.sample):
            button.setVisible(words is None)
        self.show_all.setVisible(words is not None)
