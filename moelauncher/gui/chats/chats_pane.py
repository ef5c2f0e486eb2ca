"""The chats that were kept: a list to pick from, to search, rename, copy and delete.

Values come in by methods, wishes go out by signals; it touches no file but asks for names of
files. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.chats.chat_export import file_name
from moelauncher.core.chats.kept_chat import ChatRow
from moelauncher.gui import theme as look
from moelauncher.gui.chats.chat_rows import ChatListModel, ChatRowDelegate
from moelauncher.gui.controls.pane_head import PaneHead
from moelauncher.gui.controls.undo_bar import UndoBar

SEARCH_AFTER_MS = 150


class ChatsPane(QWidget):
    """Header, search, list, and what to undo.

    Signals:
        open_requested(str): show this chat.
        new_requested(): begin an empty chat.
        search_changed(str): list only chats with these words.
        rename_requested(str, str), delete_requested(str), duplicate_requested(str): for a chat.
        export_requested(str, object): write a chat to this Path.
        import_requested(list): read the chats in these Paths.
        compare_requested(): hold the model's answers under two settings against each other.
    """

    open_requested = Signal(str)
    new_requested = Signal()
    search_changed = Signal(str)
    rename_requested = Signal(str, str)
    delete_requested = Signal(str)
    duplicate_requested = Signal(str)
    export_requested = Signal(str, object)
    import_requested = Signal(list)
    compare_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chatsPane")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._current = ""
        self._can_compare = False
        self._model = ChatListModel(self)
        self._model.renamed.connect(self.rename_requested)
        # Made in the order in which Tab goes through them.
        header = self._make_header()
        self.search = self._make_search()
        self.list = self._make_list()
        self._hint = QLabel(self)
        self._hint.setObjectName("chatsHint")
        self._hint.setTextFormat(Qt.TextFormat.PlainText)
        self._hint.setWordWrap(True)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._hint.setContentsMargins(look.PANE_MARGIN, look.HALF, look.PANE_MARGIN, 0)
        look.set_tone(self._hint, "muted")
        self._list_or_hint = QStackedLayout()
        self._list_or_hint.addWidget(self.list)
        self._list_or_hint.addWidget(self._hint)
        self.undo = UndoBar(look.PANE_MARGIN, self)
        self._searched = QTimer(self, singleShot=True, interval=SEARCH_AFTER_MS)
        self._searched.timeout.connect(lambda: self.search_changed.emit(self.search.text()))

        field = QHBoxLayout()
        field.setContentsMargins(look.PANE_MARGIN, 0, look.PANE_MARGIN, look.GRID)
        field.addWidget(self.search)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(header)
        column.addLayout(field)
        column.addLayout(self._list_or_hint, 1)
        column.addWidget(self.undo)
        look.theme().changed.connect(self.list.viewport().update)
        self._refresh()

    # Values in

    def set_rows(self, rows: Sequence[ChatRow]) -> None:
        """List these chats, newest first."""
        self._model.set_rows(rows)
        self._refresh()
        self._mark()

    def set_current(self, chat_id: str) -> None:
        """Mark the chat that is shown; empty: one that is not kept yet."""
        self._current = chat_id
        self._model.set_unread(chat_id, False)
        self._mark()

    def set_answering(self, chat_id: str) -> None:
        """Mark the chat that a reply is being written for; empty: none is."""
        self._model.set_answering(chat_id)

    def set_unread(self, chat_id: str) -> None:
        """Mark a chat that got a reply while another one was shown, until it is shown."""
        self._model.set_unread(chat_id, True)

    def set_can_compare(self, able: bool) -> None:
        """Whether answers can be compared now: a model is selected, and nothing goes on."""
        self._can_compare = able

    def title_of(self, chat_id: str) -> str:
        """What the list calls a chat; empty if it is not listed."""
        row = self._row_at(self._model.index_of(chat_id))
        return row.title if row is not None else ""

    def offer_undo(self, title: str, take_back: Callable[[], None]) -> None:
        """Say that a chat was deleted, and how to get it back."""
        self.undo.offer(self.tr("Deleted “{title}”").format(title=title), take_back)

    # Parts

    def _make_header(self) -> QWidget:
        head = PaneHead(self.tr("Chats"), self)
        self.new = head.add_text(
            "newKeptChatButton",
            self.tr("+ New"),
            self.tr("Begin a new chat (Ctrl+N); the model stays loaded."),
        )
        self.new.clicked.connect(self.new_requested)
        self.more = head.add_sign(
            "chatsMenuButton",
            "⋯",
            self.tr("More on chats"),
            self.tr("Import chats, export the one that is shown, compare answers"),
        )
        self.more.clicked.connect(self._show_pane_menu)
        return head

    def _make_search(self) -> QLineEdit:
        field = QLineEdit(self)
        field.setObjectName("chatSearch")
        field.setAccessibleName(self.tr("Search all chats"))
        field.setPlaceholderText(self.tr("Search all chats"))
        field.setClearButtonEnabled(True)
        field.setAcceptDrops(False)
        field.textChanged.connect(lambda: self._searched.start())
        field.installEventFilter(self)
        return field

    def _make_list(self) -> QListView:
        view = QListView(self)
        view.setObjectName("chatList")
        view.setAccessibleName(self.tr("Chats"))
        view.setModel(self._model)
        view.setItemDelegate(ChatRowDelegate(view))
        view.setUniformItemSizes(True)
        # In the lowest window it has room for one row: Qt asks for more, at the cost of the head.
        view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._show_row_menu)
        view.clicked.connect(self._open)
        view.activated.connect(self._open)
        view.installEventFilter(self)
        return view

    def _refresh(self) -> None:
        self._list_or_hint.setCurrentIndex(0 if self._model.rows else 1)
        if self.search.text().strip():
            text = self.tr("No chat holds “{words}”.").format(words=self.search.text().strip())
        else:
            text = self.tr("Your chats are kept here.")
        self._hint.setText(text)

    def _mark(self) -> None:
        index = self._model.index_of(self._current)
        if index.isValid():
            if self.list.currentIndex() != index:
                self.list.setCurrentIndex(index)
        else:
            self.list.selectionModel().clear()

    # What the user does

    def _row_at(self, index: QModelIndex) -> ChatRow | None:
        row = index.data(ChatListModel.ROW)
        return row if isinstance(row, ChatRow) else None

    def _open(self, index: QModelIndex) -> None:
        row = self._row_at(index)
        if row is not None and row.id != self._current:
            self.open_requested.emit(row.id)

    def _show_row_menu(self, point: QPoint) -> None:
        index = self.list.indexAt(point)
        row = self._row_at(index)
        if row is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_row_menu(menu, index, row)
        menu.popup(self.list.viewport().mapToGlobal(point))

    def fill_row_menu(self, menu: QMenu, index: QModelIndex, row: ChatRow) -> None:
        """What can be done with the chat of one row."""
        menu.addAction(self.tr("Rename"), lambda: self.list.edit(index))
        menu.addAction(self.tr("Duplicate"), lambda: self.duplicate_requested.emit(row.id))
        menu.addAction(self.tr("Export…"), lambda: self._export(row))
        menu.addSeparator()
        menu.addAction(self.tr("Delete"), lambda: self.delete_requested.emit(row.id))

    def _show_pane_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Import chats…"), self._import)
        row = self._row_at(self._model.index_of(self._current))
        export = menu.addAction(self.tr("Export this chat…"))
        export.setEnabled(row is not None)
        if row is not None:
            export.triggered.connect(lambda: self._export(row))
        menu.addSeparator()
        compare = menu.addAction(self.tr("Same answers under two settings…"))
        compare.setEnabled(self._can_compare)
        compare.triggered.connect(lambda: self.compare_requested.emit())
        menu.popup(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def _export(self, row: ChatRow) -> None:
        kinds = (self.tr("Markdown (*.md)"), self.tr("JSON, with all versions (*.json)"))
        name, kind = QFileDialog.getSaveFileName(
            self, self.tr("Export chat"), file_name(row.title, ".md"), ";;".join(kinds)
        )
        if not name:
            return
        path = Path(name)
        if kind == kinds[1] and path.suffix.lower() != ".json":
            path = path.with_suffix(".json")
        self.export_requested.emit(row.id, path)

    def _import(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(
            self, self.tr("Import chats"), "", self.tr("Chats (*.json *.md)")
        )
        if names:
            self.import_requested.emit([Path(name) for name in names])

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            key = event.key()
            if watched is self.list and key == Qt.Key.Key_Delete:
                row = self._row_at(self.list.currentIndex())
                if row is not None:
                    self.delete_requested.emit(row.id)
                return True
            if watched is self.search and key == Qt.Key.Key_Down and self._model.rows:
                self.list.setFocus(Qt.FocusReason.TabFocusReason)
                if not self.list.currentIndex().isValid():
                    self.list.setCurrentIndex(self._model.index(0))
                return True
            if watched is self.search and key == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:
        return QSize(208, 124)

    def sizeHint(self) -> QSize:
        return QSize(272, 300)
