"""Where the speed plots stand: one at a time, or one above the other where both have room.

In: the plots, once they are made, and which one is wanted. GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedLayout, QVBoxLayout, QWidget

from moelauncher.gui.controls.pane import plain_label
from moelauncher.gui.theme import GRID, HALF, font

#: A curve without a scale, or a line of words.
LEAST_HEIGHT = 34
TALLEST_PLOT = 420
#: From this height on both plots are as tall as the one in a window of 1280 x 800.
BOTH_FROM = 300


class SpeedView(QWidget):
    """A place for one plot, with words in it while the plot has nothing to show."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.caption = plain_label(name, "muted")
        self.caption.setFont(font("small", bold=True))
        self.caption.hide()
        self.empty = plain_label("", "muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        # On its own ground, so that no line of the plot runs through the words.
        self.empty.setProperty("hint", True)
        self._page = QWidget()
        self._page.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        page = QVBoxLayout(self._page)
        page.setContentsMargins(0, 0, 0, 0)
        page.addWidget(self.empty, 0, Qt.AlignmentFlag.AlignCenter)
        self._layers = QStackedLayout()
        self._layers.setStackingMode(QStackedLayout.StackingMode.StackAll)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(HALF)
        column.addWidget(self.caption)
        column.addLayout(self._layers, 1)
        # Only now: a stack that stands nowhere shows its first page as a window of its own.
        self._layers.addWidget(self._page)

    def set_plot(self, plot: QWidget) -> None:
        """Show ``plot`` here, behind the words."""
        self._layers.addWidget(plot)
        self._layers.setCurrentWidget(self._page)

    def set_empty(self, words: str) -> None:
        """What to say of an empty plot; "" for one that shows something."""
        if words:
            self.empty.setText(words)
        self.empty.setVisible(bool(words))


class SpeedViews(QWidget):
    """The live view and the one by setting.

    Signals:
        both_changed(bool): whether both are shown.
    """

    both_changed = Signal(bool)

    def __init__(
        self, live: SpeedView, by_setting: SpeedView, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.live = live
        self.by_setting = by_setting
        self._both = False
        self._wanted = live
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID)
        for view in (live, by_setting):
            column.addWidget(view, 1)
        # Its own, whatever is shown: else two plots would not let the window become smaller.
        self.setMinimumHeight(LEAST_HEIGHT)
        self.setMaximumHeight(2 * TALLEST_PLOT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._arrange()

    @property
    def shown(self) -> tuple[SpeedView, ...]:
        """From top to bottom."""
        return (self.live, self.by_setting) if self._both else (self._wanted,)

    def want(self, view: SpeedView) -> None:
        """Show ``view`` where there is room for one only."""
        self._wanted = view
        self._arrange()

    def _arrange(self) -> None:
        for view in (self.live, self.by_setting):
            view.setVisible(view in self.shown)
            view.caption.setVisible(self._both)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        both = self.height() >= BOTH_FROM
        if both != self._both:
            self._both = both
            self._arrange()
            self.both_changed.emit(both)
