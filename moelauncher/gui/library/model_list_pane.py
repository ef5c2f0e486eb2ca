"""The left of the window: the models found, a filter, and how to add more.

Values come in by methods, wishes go out by signals; it touches no file. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QItemSelection, QModelIndex, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QListView,
    QMenu,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.speed.best_setting import BestSetting
from moelauncher.gui import theme as look
from moelauncher.gui.controls.menu_button import open_under
from moelauncher.gui.controls.pane import rule
from moelauncher.gui.controls.pane_head import PaneHead
from moelauncher.gui.library.filter_field import FilterField
from moelauncher.gui.library.model_list_foot import ModelListFoot
from moelauncher.gui.library.model_list_menus import ModelListMenus
from moelauncher.gui.library.model_list_model import ModelFilter, ModelListModel
from moelauncher.gui.library.model_row import ModelRow, is_listed
from moelauncher.gui.library.model_row_delegate import ModelRowDelegate
from moelauncher.gui.library.no_models_page import NoModelsPage

#: So many rows are laid out in one go.
ROWS_AT_ONCE = 250
#: A pane below this height has no room for the large drop box, in pixels.
LOW = 420


class ModelListPane(QWidget):
    """Header, filter, list (or what to do without models), and the drop hint.

    Signals:
        entry_selected(object): the selected CatalogEntry, or None; also when what is known of
            the selected one changed.
        add_folder_requested(), add_file_requested(): open the chooser.
        refresh_requested(): look at the folders again.
        remove_requested(object): no longer list this folder or file (a Path of set_sources).
        demo_requested(): build the sample model.
        demo_cancel_requested(): stop building it.
        copy_path_requested(object): the entry whose path is wanted on the clipboard.
        count_changed(int, bool): so many models are listed, and whether it is still looked.

    ``menus`` has signals of its own, for what its actions ask for.
    """

    entry_selected = Signal(object)
    add_folder_requested = Signal()
    add_file_requested = Signal()
    refresh_requested = Signal()
    remove_requested = Signal(object)
    demo_requested = Signal()
    demo_cancel_requested = Signal()
    copy_path_requested = Signal(object)
    count_changed = Signal(int, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("modelListPane")
        self.setProperty("panel", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._scanning = False
        self._wanted_in_view = False  # the selected row, once it is laid out
        self._filtering = False
        self.menus = ModelListMenus(self)
        self.menus.add_folder.connect(self.add_folder_requested)
        self.menus.add_file.connect(self.add_file_requested)
        self.menus.remove_source.connect(self.remove_requested)
        self.menus.copy_path.connect(self.copy_path_requested)
        self._told: CatalogEntry | None = None
        self._model = ModelListModel(self)
        self._filtered = ModelFilter(self._model, self)
        self._folder_menu = QMenu(self)
        self._folder_menu.aboutToShow.connect(
            lambda: self.menus.fill_folder_menu(self._folder_menu)
        )
        # Made in the order in which Tab goes through them.
        head = self._make_header()
        self.filter = self._make_filter()
        self.list = self._make_list()

        self._list_or_hint = QStackedLayout()
        self._list_or_hint.addWidget(self.list)
        self._none = NoModelsPage(self)
        self._none.add_folder.clicked.connect(self.add_folder_requested)
        self._none.get_model.clicked.connect(self.menus.get_model)
        self._none.sample.clicked.connect(self.demo_requested)
        self._none.show_all.clicked.connect(self.filter.clear)
        self._list_or_hint.addWidget(self._none)
        self._foot = ModelListFoot(self)
        self.drop_hint = self._foot.drop_hint
        self.drop_hint.clicked.connect(self.add_file_requested)
        self._foot.cancel_requested.connect(self.demo_cancel_requested)

        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(head)
        column.addWidget(rule(self))
        column.addLayout(_inset(self.filter, 10, 10))
        column.addLayout(self._list_or_hint, 1)
        column.addLayout(_inset(self._foot, look.GRID, look.PANE_MARGIN))
        self._column = column
        look.theme().changed.connect(self.list.viewport().update)
        self._refresh()

    # Values in

    def entries(self) -> list[CatalogEntry]:
        """What is listed, filtered or not."""
        return self._model.entries

    def selected(self) -> CatalogEntry | None:
        """The entry that is selected."""
        row = self.list.currentIndex().data(ModelListModel.ROW)
        return row.entry if isinstance(row, ModelRow) else None

    def set_entries(self, entries: Iterable[CatalogEntry]) -> None:
        """Replace the list; the selection stays with its path."""
        self._renew(lambda: self._model.set_entries(entries))

    def merge(self, rows: Iterable[ModelRow]) -> None:
        """Add or renew many rows at once; the selection stays with its path."""
        self._renew(lambda: self._model.merge(rows))

    def _renew(self, change: Callable[[], None]) -> None:
        kept = self._told.path if self._told is not None else None
        change()
        # Thousands of rows are laid out a part at a time, between the window's other work.
        mode = QListView.LayoutMode
        many = self._model.rowCount() > 2 * ROWS_AT_ONCE
        self.list.setLayoutMode(mode.Batched if many else mode.SinglePass)
        if kept is not None and self.selected() is None:
            self._select(kept)
        self._refresh()
        self._tell()

    def upsert(self, entry: CatalogEntry) -> None:
        """Add an entry, or update the row of its path."""
        if not is_listed(entry):
            self._deselect(entry.path)
        self._model.upsert(entry)
        self._refresh()
        self._tell()

    def remove(self, path: Path) -> None:
        """Drop the row of ``path``."""
        self._deselect(path)
        self._model.remove(path)
        self._refresh()
        self._tell()

    def select_path(self, path: Path) -> bool:
        """Select the model at ``path``, ending a filter that hides it; False if not listed."""
        if self._model.row_of(path) is None:
            return False
        if not self._select(path):
            self.filter.clear()
            self._select(path)
        self._tell()
        return True

    def set_verdict(self, path: Path, text: str, level: str) -> None:
        """How the model would run. ``level``: "good", "warn", "bad", or "" for no dot."""
        self._model.set_verdict(path, text, level)

    def set_best(self, path: Path, best: BestSetting | None) -> None:
        """The best setting that was measured of the model; None: none is known."""
        self._model.set_best(path, best)

    def set_scanning(self, scanning: bool) -> None:
        """Whether folders are being read."""
        self._scanning = scanning
        self._refresh()

    def set_demo_progress(self, fraction: float | None) -> None:
        """How much of the sample model is built, 0..1; None when it is not being built."""
        self._none.sample.setEnabled(fraction is None)
        self._foot.set_progress(fraction)

    def set_sources(self, sources: Sequence[Path]) -> None:
        """The folders and single files that the user added, and can take away again."""
        self.menus.set_sources(sources)

    # Parts

    def _make_filter(self) -> FilterField:
        field = FilterField(self)
        field.setObjectName("modelFilter")
        field.setAccessibleName(self.tr("Filter models"))
        field.setClearButtonEnabled(True)
        # Files that are dropped here are for the window.
        field.setAcceptDrops(False)
        field.textChanged.connect(self._filter_changed)
        field.leave_requested.connect(self._enter_list)
        return field

    def _make_list(self) -> QListView:
        view = QListView(self)
        view.setObjectName("modelList")
        view.setAccessibleName(self.tr("Models"))
        view.setModel(self._filtered)
        view.setItemDelegate(ModelRowDelegate(self._model, view))
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setBatchSize(ROWS_AT_ONCE)
        view.verticalScrollBar().rangeChanged.connect(self._show_wanted)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._show_row_menu)
        view.selectionModel().selectionChanged.connect(self._selection_changed)
        self._model.told.connect(view.viewport().update)
        return view

    def _make_header(self) -> QWidget:
        head = PaneHead(self.tr("Models"), self)
        self.program_button = head.add_sign(
            "programButton",
            "☰",
            self.tr("Program menu"),
            self.tr("Settings, doctor, log, updates"),
            first=True,
        )
        self.program_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.program_button.setStyleSheet("QToolButton::menu-indicator { image: none; width: 0; }")
        self.folder_button = head.add_text(
            "folderButton", self.tr("+ Folder"), self.tr("Add or remove folders with models")
        )
        self.folder_button.setStyleSheet("QPushButton::menu-indicator { image: none; width: 0; }")
        open_under(self.folder_button, self._folder_menu)
        self.refresh_button = head.add_sign(
            "refreshButton", "⟳", self.tr("Refresh"), self.tr("Look at the folders again")
        )
        self.refresh_button.clicked.connect(self.refresh_requested)
        return head

    def _show_row_menu(self, point: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self._fill_row_menu(menu, self.list.indexAt(point)):
            menu.popup(self.list.viewport().mapToGlobal(point))

    def _fill_row_menu(self, menu: QMenu, index: QModelIndex) -> bool:
        row = index.data(ModelListModel.ROW)
        if not isinstance(row, ModelRow):
            return False
        self.menus.fill_row_menu(menu, row.entry)
        return True

    # Selection and filter

    def _select(self, path: Path) -> bool:
        row = self._model.row_of(path)
        if row is None:
            return False
        index = self._filtered.mapFromSource(self._model.index(row))
        if not index.isValid():
            return False
        self.list.setCurrentIndex(index)
        self._wanted_in_view = True
        self._show_wanted()
        return True

    def _show_wanted(self) -> None:
        """Scroll to the row that was selected, as soon as it has a place."""
        index = self.list.currentIndex()
        if self._wanted_in_view and self.list.visualRect(index).isValid():
            self._wanted_in_view = False
            self.list.scrollTo(index)

    def _deselect(self, path: Path) -> None:
        # Else the view would choose a neighbour by itself: no model is picked but by the user.
        entry = self.selected()
        if entry is not None and entry.path == path:
            self.list.selectionModel().clear()

    def _selection_changed(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._tell()

    def _tell(self) -> None:
        if self._filtering:
            return
        indexes = self.list.selectionModel().selectedIndexes()
        row = indexes[0].data(ModelListModel.ROW) if indexes else None
        entry = row.entry if isinstance(row, ModelRow) else None
        if entry is None and self._told is not None and self._hidden(self._told):
            # A filter hides the row; the choice stays.
            return
        if entry != self._told:
            self._told = entry
            self.entry_selected.emit(entry)

    def _hidden(self, entry: CatalogEntry) -> bool:
        return bool(self.filter.text()) and self._model.row_of(entry.path) is not None

    def _filter_changed(self, text: str) -> None:
        self._filtering = True
        self.list.selectionModel().clear()
        self._filtered.set_words(text)
        if self._told is not None:
            self._select(self._told.path)
        self._filtering = False
        self._refresh()

    def _enter_list(self) -> None:
        if self._filtered.rowCount() == 0:
            return
        self.list.setFocus(Qt.FocusReason.TabFocusReason)
        if not self.list.selectionModel().hasSelection():
            self.list.setCurrentIndex(self._filtered.index(0, 0))

    def _refresh(self) -> None:
        n_models = self._model.rowCount()
        self.count_changed.emit(n_models, self._scanning)
        self.refresh_button.setEnabled(not self._scanning)
        self._show_foot()
        if self._scanning:
            text = self.tr("Looking for models: {n} so far").format(n=n_models)
        elif n_models == 0:
            text = self.tr("Filter models")
        elif n_models == 1:
            text = self.tr("Filter 1 model")
        else:
            text = self.tr("Filter {n} models").format(n=n_models)
        self.filter.setPlaceholderText(text)
        self.filter.setEnabled(n_models > 0)
        self._list_or_hint.setCurrentIndex(0 if self._filtered.rowCount() else 1)
        self._none.tell(self.filter.text() if n_models else None, self._scanning)
        self.updateGeometry()

    def _show_foot(self) -> None:
        """The drop box is small under a list, and in a window too low for a large one."""
        self._foot.set_under_list(self._model.rowCount() > 0 or self.height() < LOW)

    # Qt's own

    def minimumSizeHint(self) -> QSize:
        least = 240
        if self._list_or_hint.currentWidget() is self._none:
            least = max(least, self._column.totalMinimumSize().height())
        return QSize(208, least)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_foot()

    def sizeHint(self) -> QSize:
        return QSize(272, 600)


def _inset(widget: QWidget, top: int, bottom: int) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setContentsMargins(look.PANE_MARGIN, top, look.PANE_MARGIN, bottom)
    row.addWidget(widget)
    return row
