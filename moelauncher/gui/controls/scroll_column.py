"""A column that scrolls up and down, with its bar over the margin. GUI thread only.

The bar takes no width from the content: what is opened at the column's foot moves nothing
sideways, and a margin of the content's own lies under the bar.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QWidget


class ScrollColumn(QScrollArea):
    """Holds ``content``; never narrower than it, nor than ``least_width``."""

    def __init__(self, content: QWidget, least_width: int) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # The area's own bar stands beside the content: it keeps the position, unseen.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._content = content
        self._least_width = least_width
        self.setMinimumWidth(least_width)
        self.bar = QScrollBar(Qt.Orientation.Vertical, self)
        self.bar.hide()
        own = self.verticalScrollBar()
        own.rangeChanged.connect(self._follow_range)
        own.valueChanged.connect(self.bar.setValue)
        self.bar.valueChanged.connect(own.setValue)
        self.setWidget(content)
        content.installEventFilter(self)

    def _follow_range(self, first: int, last: int) -> None:
        own = self.verticalScrollBar()
        self.bar.setRange(first, last)
        self.bar.setPageStep(own.pageStep())
        self.bar.setSingleStep(own.singleStep())
        self.bar.setVisible(last > first)
        self.bar.raise_()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        width = self.bar.sizeHint().width()
        self.bar.setGeometry(self.width() - width, 0, width, self.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and watched is self._content:
            least = self._content.minimumSizeHint().width()
            self.setMinimumWidth(max(self._least_width, least))
        return super().eventFilter(watched, event)
