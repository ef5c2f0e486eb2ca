"""The card of one model: what it is, what it will do here, its layers, tensors and metadata.

Values come in as a :class:`ModelCard`; it touches no file. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.library.model_card import ModelCard, TypeShare
from moelauncher.core.units import format_bytes
from moelauncher.gui.controls.pane import plain_label, rule
from moelauncher.gui.library.layer_chart import LayerChart
from moelauncher.gui.library.metadata_table import MetadataTable
from moelauncher.gui.theme import GRID, PANE_MARGIN, font, section_font, set_tone

_LABEL_PX = 140


class ModelCardDialog(QDialog):
    """Shown beside the window; :meth:`set_card` may be called again while it is open."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelCard")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(QSize(880, 660))
        self.setMinimumSize(QSize(560, 420))
        self.name = plain_label()
        self.name.setObjectName("cardName")
        self.name.setFont(font("title", bold=True))
        self.name.setWordWrap(True)
        self.pages = QStackedWidget()
        self._group = QButtonGroup(self)
        segments = QHBoxLayout()
        segments.setSpacing(2)
        self.overview = _Rows()
        self.here = _Rows(figures=True)
        self.chart = LayerChart()
        self.types = _TypeTable()
        self.metadata = MetadataTable()
        self.template = QPlainTextEdit()
        for label, name, page in (
            (self.tr("Overview"), "cardOverview", self._overview_page()),
            (self.tr("Weights"), "cardWeights", self._weights_page()),
            (self.tr("Metadata"), "cardMetadata", self.metadata),
            (self.tr("Chat template"), "cardTemplate", self._template_page()),
        ):
            self._add_page(segments, label, name, page)
        segments.addStretch(1)
        close = QPushButton(self.tr("Close"))
        close.setObjectName("cardClose")
        close.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(PANE_MARGIN, PANE_MARGIN, PANE_MARGIN, PANE_MARGIN)
        column.setSpacing(GRID + 4)
        column.addWidget(self.name)
        column.addLayout(segments)
        column.addWidget(rule())
        column.addWidget(self.pages, 1)
        column.addLayout(foot)

    def set_card(self, card: ModelCard) -> None:
        """Show a model."""
        self.setWindowTitle(self.tr("{name} – model card").format(name=card.name))
        self.name.setText(card.name)
        self.overview.set_rows(card.summary)
        self.here.set_rows(card.here)
        self.here_title.setVisible(bool(card.here))
        if card.verdict is not None:
            self.here.set_tone_of_first(card.verdict.level)
        self.chart.set_layers(card.layers)
        self.types.set_types(card.types)
        self.metadata.set_rows(card.metadata)
        self.template.setPlainText(card.template)

    # Pages

    def _add_page(self, row: QHBoxLayout, label: str, name: str, page: QWidget) -> None:
        number = self.pages.addWidget(page)
        button = QPushButton(label)
        button.setObjectName(name)
        button.setProperty("kind", "segment")
        button.setCheckable(True)
        button.setChecked(number == 0)
        button.clicked.connect(lambda: self.pages.setCurrentIndex(number))
        self._group.addButton(button)
        row.addWidget(button)

    def _overview_page(self) -> QWidget:
        self.here_title = _section(self.tr("What it will do here"))
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, GRID, 0)
        column.setSpacing(GRID)
        column.addWidget(self.here_title)
        column.addWidget(self.here)
        column.addSpacing(GRID)
        column.addWidget(_section(self.tr("What it is")))
        column.addWidget(self.overview)
        column.addStretch(1)
        return _scrolled(content)

    def _weights_page(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID)
        column.addWidget(_section(self.tr("Each layer: dense weights below, experts above")))
        column.addWidget(self.chart, 1)
        column.addWidget(_section(self.tr("Tensor types")))
        column.addWidget(self.types)
        return page

    def _template_page(self) -> QWidget:
        self.template.setObjectName("cardTemplateText")
        self.template.setAccessibleName(self.tr("Chat template"))
        self.template.setReadOnly(True)
        self.template.setPlaceholderText(self.tr("The file has no chat template."))
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        fixed.setPixelSize(font("small").pixelSize())
        fixed.setStyleHint(QFont.StyleHint.Monospace)
        self.template.setFont(fixed)
        return self.template


def _section(text: str) -> QLabel:
    label = plain_label(text, "muted")
    label.setFont(section_font())
    return label


def _scrolled(content: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    return area


class _Rows(QWidget):
    """Labels at the left, values at the right; the values can be selected and copied."""

    def __init__(self, *, figures: bool = False) -> None:
        super().__init__()
        self._figures = figures
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(2 * GRID)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnMinimumWidth(0, _LABEL_PX)
        self._grid.setColumnStretch(1, 1)
        self._pairs: list[tuple[QLabel, QLabel]] = []

    def set_rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """Show these pairs; labels that are there already are used again."""
        while len(self._pairs) < len(rows):
            number = len(self._pairs)
            label, value = plain_label("", "muted"), plain_label()
            value.setWordWrap(True)
            value.setFont(font("body", figures=True))
            for one in (label, value):
                # Both, for Qt puts selectable text on another line than plain text.
                one.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._grid.addWidget(label, number, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(value, number, 1)
            self._pairs.append((label, value))
        for number, (label, value) in enumerate(self._pairs):
            shown = number < len(rows)
            label.setVisible(shown)
            value.setVisible(shown)
            if shown:
                label.setText(rows[number][0])
                value.setText(rows[number][1])

    def set_tone_of_first(self, tone: str) -> None:
        """Colour the first value: "good", "warn", "bad"."""
        if self._pairs:
            set_tone(self._pairs[0][1], tone)


class _TypeTable(QWidget):
    """One row a storage type: tensors, bytes, share, and how much of it are experts."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("cardTypes")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(3 * GRID)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(5, 1)

    def set_types(self, types: Sequence[TypeShare]) -> None:
        """Show these types."""
        while self._grid.count():
            item = self._grid.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.deleteLater()
        total = sum(share.n_bytes for share in types) or 1
        heads = (self.tr("Type"), self.tr("Tensors"), self.tr("Size"), self.tr("Share"))
        rows = [(*heads, self.tr("Experts in it"))]
        rows += [
            (
                share.name,
                f"{share.n_tensors:,}",
                format_bytes(share.n_bytes),
                f"{100 * share.n_bytes / total:.1f} %",
                format_bytes(share.n_expert_bytes) if share.n_expert_bytes else "–",
            )
            for share in types
        ]
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                label = plain_label(text, "" if number else "muted")
                label.setFont(font("small", figures=True))
                side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
                self._grid.addWidget(label, number, column, side)
