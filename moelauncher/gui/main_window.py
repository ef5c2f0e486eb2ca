"""The window: models | chat | memory, placement and speed, over the status line.

It arranges panes and remembers their sizes; what they say to each other is wired outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray, QEvent, QMimeData, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
    QShortcut,
)
from PySide6.QtWidgets import (
    QMainWindow,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.chats.chats_pane import ChatsPane
from moelauncher.gui.controls.pane import rule
from moelauncher.gui.controls.scroll_column import ScrollColumn
from moelauncher.gui.library.model_heading import ModelHeading
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.memory.memory_pane import MemoryPane
from moelauncher.gui.memory.placement_pane import PlacementPane
from moelauncher.gui.palette import faded
from moelauncher.gui.program.log_pane import LogPane
from moelauncher.gui.program.status_line import StatusLine
from moelauncher.gui.speed.speed_pane import SpeedPane
from moelauncher.gui.theme import RADIUS, font, theme

#: Fits a full HD screen at 200 %.
MINIMUM_SIZE = QSize(952, 500)
USUAL_SIZE = QSize(1440, 900)
LEFT_WIDTH, RIGHT_WIDTH = 280, 392
LEFT_MINIMUM, MIDDLE_MINIMUM, RIGHT_MINIMUM = 224, 340, 336
LOG_HEIGHT = 220


class _DropHint(QWidget):
    """Lies over the window while files are dragged over it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.what = ""  # "" models, "quote" text for the message, "results" for the plot
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), faded(colors.window, 0.85))
        frame = QRectF(self.rect()).adjusted(16, 16, -16, -16)
        painter.setPen(QPen(colors.accent, 2, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(frame, RADIUS, RADIUS)
        painter.setPen(colors.text)
        painter.setFont(font("title", bold=True))
        text = {
            "": self.tr("Drop GGUF files or folders to add them"),
            "quote": self.tr("Drop text files to quote them in the message"),
            "results": self.tr("Drop results of llama-bench to draw them"),
        }[self.what]
        painter.drawText(frame, Qt.AlignmentFlag.AlignCenter, text)


class MainWindow(QMainWindow):
    """All panes as attributes: model_list, heading, chat, memory, placement, speed, status, log.
    ``center`` holds them all.

    Signals:
        paths_dropped: a list of Path, files and folders, dropped anywhere.
        closing: the window was asked to close, and does.
    """

    paths_dropped = Signal(list)
    closing = Signal()

    def __init__(
        self, model_list: ModelListPane, chat: ChatPane, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("mainWindow")
        self.setWindowTitle(self.tr("MoE Launcher"))
        self.setMinimumSize(MINIMUM_SIZE)
        self.setAcceptDrops(True)
        self.model_list = model_list
        self.chat = chat
        self.chats = ChatsPane()
        self.heading = ModelHeading()
        self.memory = MemoryPane()
        self.placement = PlacementPane()
        self.speed = SpeedPane()
        self.status = StatusLine()
        self.log = LogPane()

        self._columns = self._splitter(Qt.Orientation.Horizontal)
        left, middle, right = self._left(), self._middle(), self._right()
        left.setMinimumWidth(LEFT_MINIMUM)
        middle.setMinimumWidth(MIDDLE_MINIMUM)
        for index, pane in enumerate((left, middle, right)):
            self._columns.addWidget(pane)
            # The chat takes what a larger window brings.
            self._columns.setStretchFactor(index, 1 if index == 1 else 0)
        self._rows = self._splitter(Qt.Orientation.Vertical)
        self._rows.addWidget(self._columns)
        self._rows.addWidget(self.log)
        self._rows.setStretchFactor(0, 1)
        self._rows.setStretchFactor(1, 0)

        center = QWidget()
        center.setProperty("panel", True)
        column = QVBoxLayout(center)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._rows, 1)
        column.addWidget(rule())
        column.addWidget(self.status)
        self.setCentralWidget(center)
        self.center = center
        self._drop_hint = _DropHint(center)

        self.status.warnings_clicked.connect(self.toggle_log)
        self.placement.launch_done.connect(self.chat.focus_input)
        QShortcut(QKeySequence(self.tr("Ctrl+Q")), self).activated.connect(self.close)
        QShortcut(QKeySequence(self.tr("Ctrl+Shift+L")), self).activated.connect(self.toggle_log)
        # Else the first button would have the keyboard at the start.
        self.chat.focus_input()
        self._usual_size()

    # Building

    def _splitter(self, orientation: Qt.Orientation) -> QSplitter:
        splitter = QSplitter(orientation)
        # Qt widens the grip of a handle of one pixel by itself.
        splitter.setHandleWidth(1)
        splitter.setChildrenCollapsible(False)
        return splitter

    def _left(self) -> QWidget:
        self._lists = self._splitter(Qt.Orientation.Vertical)
        self._lists.addWidget(self.model_list)
        self._lists.addWidget(self.chats)
        self._lists.setStretchFactor(0, 1)
        self._lists.setStretchFactor(1, 1)
        return self._lists

    def _middle(self) -> QWidget:
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.heading)
        column.addWidget(rule())
        column.addWidget(self.chat, 1)
        return middle

    def _right(self) -> QWidget:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.memory)
        column.addWidget(rule())
        column.addWidget(self.placement)
        column.addWidget(rule())
        column.addWidget(self.speed, 1)
        side = ScrollColumn(content, RIGHT_MINIMUM)
        side.setObjectName("rightSide")
        return side

    def _usual_size(self) -> None:
        screen = QGuiApplication.primaryScreen()
        size = QSize(USUAL_SIZE)
        if screen is not None:
            size = size.boundedTo(screen.availableSize())
        self.resize(size.expandedTo(MINIMUM_SIZE))
        middle = self.width() - LEFT_WIDTH - RIGHT_WIDTH - 2
        self._columns.setSizes([LEFT_WIDTH, middle, RIGHT_WIDTH])
        self._lists.setSizes([self.height() * 11 // 20, self.height() * 9 // 20])
        self._rows.setSizes([self.height() - LOG_HEIGHT, LOG_HEIGHT])

    # What is remembered

    def state(self) -> dict[str, object]:
        """Sizes, as values that JSON can hold."""
        return {
            "geometry": self.saveGeometry().toBase64().toStdString(),
            "columns": self._columns.sizes(),
            "lists": self._lists.sizes(),
            "rows": self._rows.sizes() if self.log.isVisible() else None,
            "more": self.placement.more_button.isChecked(),
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """Take back what :meth:`state` gave; what makes no sense is passed over."""
        geometry = state.get("geometry")
        if isinstance(geometry, str):
            self.restoreGeometry(QByteArray.fromBase64(geometry.encode("ascii", "ignore")))
        columns = _sizes(state.get("columns"), 3)
        if columns:
            self._columns.setSizes(columns)
        lists = _sizes(state.get("lists"), 2)
        if lists:
            self._lists.setSizes(lists)
        rows = _sizes(state.get("rows"), 2)
        if rows:
            self.log.show()
            self._rows.setSizes(rows)
        self.placement.more_button.setChecked(state.get("more") is True)

    def toggle_log(self) -> None:
        """Show the log, or put it away."""
        self.log.setVisible(self.log.isHidden())

    # Drops: anywhere, also over fields that would take text

    def watch_drops(self) -> None:
        """Take file drops over child widgets too. Call again when panes got new fields."""
        for child in self.findChildren(QWidget):
            if child.acceptDrops() and child is not self:
                child.removeEventFilter(self)
                child.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DragLeave:
            self._drop_hint.hide()
        elif isinstance(event, QDropEvent) and _paths(event.mimeData()):
            over = watched if isinstance(watched, QWidget) else self
            if event.type() == QEvent.Type.Drop:
                self._take(event, over)
            else:
                self._greet(event, over)
            return True
        return super().eventFilter(watched, event)

    def _greet(self, event: QDropEvent, over: QWidget) -> None:
        paths = _paths(event.mimeData())
        if not paths:
            return
        event.acceptProposedAction()
        self._drop_hint.what = self._meant(event, over, paths)
        self._drop_hint.update()
        self._drop_hint.setGeometry(self.center.rect())
        self._drop_hint.raise_()
        self._drop_hint.show()

    def _take(self, event: QDropEvent, over: QWidget) -> None:
        self._drop_hint.hide()
        paths = _paths(event.mimeData())
        if paths:
            event.acceptProposedAction()
            taken = {
                "": self.paths_dropped,
                "quote": self.chat.files_dropped,
                "results": self.speed.results_dropped,
            }[self._meant(event, over, paths)]
            taken.emit(paths)

    def _meant(self, event: QDropEvent, over: QWidget, paths: Sequence[Path]) -> str:
        """What a drop of ``paths`` on ``over`` is for, see :class:`_DropHint`."""
        point = over.mapTo(self, event.position().toPoint())
        for pane, fits, what in (
            (self.chat, _quotable, "quote"),
            (self.speed, _results, "results"),
        ):
            within = pane.isAncestorOf(over) or pane.rect().contains(pane.mapFrom(self, point))
            if within and fits(paths):
                return what
        return ""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._greet(event, self)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self._greet(event, self)

    def dropEvent(self, event: QDropEvent) -> None:
        self._take(event, self)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop_hint.hide()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        super().closeEvent(event)


def _quotable(paths: Sequence[Path]) -> bool:
    """Whether files are for the chat: no models, no folders."""
    return all(path.suffix.lower() != ".gguf" and not path.is_dir() for path in paths)


def _results(paths: Sequence[Path]) -> bool:
    """Whether files may be results of another program."""
    return all(path.suffix.lower() in (".json", ".jsonl") for path in paths)


def _paths(mime: QMimeData) -> list[Path]:
    return [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]


def _sizes(value: object, count: int) -> Sequence[int]:
    if not isinstance(value, list | tuple) or len(value) != count:
        return ()
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in value):
        return ()
    return [min(max(0, size), 100_000) for size in value] if any(value) else ()
