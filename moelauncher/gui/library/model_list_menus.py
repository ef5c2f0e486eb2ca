"""The menus of the model list: where models come from, and what can be done with one.

Values come in by methods, wishes go out by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.text_cleaning import display_name


@dataclass(frozen=True)
class SourceRow:
    """One program whose models can be listed; ``folders`` are those that exist here."""

    key: str
    label: str
    on: bool
    folders: tuple[Path, ...]


class ModelListMenus(QObject):
    """Fills menus anew each time they open.

    Signals:
        add_folder(), add_file(): open the chooser.
        get_model(): open the dialog that downloads.
        remove_source(object): no longer list this folder or file (a Path).
        source_switched(str, bool): list a program's models, or no longer.
        show_hidden(): put back what was taken from the list.
        card(object), reveal(object), copy_path(object), hide(object), trash(object): of an entry.
    """

    add_folder = Signal()
    add_file = Signal()
    get_model = Signal()
    remove_source = Signal(object)
    source_switched = Signal(str, bool)
    show_hidden = Signal()
    card = Signal(object)
    reveal = Signal(object)
    copy_path = Signal(object)
    hide = Signal(object)
    trash = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: list[Path] = []
        self._programs: list[SourceRow] = []
        self._n_hidden = 0

    def set_sources(self, sources: Sequence[Path]) -> None:
        """The folders and files that the user added."""
        self._sources = list(sources)

    def set_programs(self, programs: Sequence[SourceRow]) -> None:
        """The programs whose folders are looked at by themselves."""
        self._programs = list(programs)

    def set_hidden_count(self, n_hidden: int) -> None:
        """How many models were taken from the list."""
        self._n_hidden = n_hidden

    def fill_folder_menu(self, menu: QMenu) -> None:
        """What the "+ Folder" button opens."""
        menu.clear()
        menu.setToolTipsVisible(True)
        menu.addAction(self.tr("Add folder…"), self.add_folder.emit)
        menu.addAction(self.tr("Add file…"), self.add_file.emit)
        menu.addAction(self.tr("Get a model…"), self.get_model.emit)
        if self._programs:
            menu.addSection(self.tr("Found by itself"))
        for program in self._programs:
            self._add_program(menu, program)
        if self._n_hidden:
            menu.addSeparator()
            text = self.tr("List the {n} removed models again").format(n=self._n_hidden)
            menu.addAction(text, self.show_hidden.emit)
        if self._sources:
            menu.addSeparator()
        for source in self._sources:
            self._add_remove_action(menu, source)

    def fill_row_menu(self, menu: QMenu, entry: CatalogEntry) -> None:
        """What a right click on a model opens."""
        if entry.offered:
            menu.addAction(self.tr("Model card"), lambda: self.card.emit(entry))
        menu.addAction(self.tr("Show in folder"), lambda: self.reveal.emit(entry))
        menu.addAction(self.tr("Copy path"), lambda: self.copy_path.emit(entry))
        menu.addSeparator()
        for source in self._sources:
            if source == entry.path or source in entry.path.parents:
                self._add_remove_action(menu, source)
                break
        if entry.files:
            hide = menu.addAction(self.tr("Remove from list"), lambda: self.hide.emit(entry))
            hide.setToolTip(self.tr("The file stays where it is."))
            menu.addAction(self.tr("Move to trash…"), lambda: self.trash.emit(entry))

    def _add_program(self, menu: QMenu, program: SourceRow) -> None:
        action = menu.addAction(program.label)
        action.setCheckable(True)
        action.setChecked(program.on)
        places = [display_name(str(folder)) for folder in program.folders]
        action.setToolTip("\n".join(places) or self.tr("No models of it were found here."))
        action.toggled.connect(lambda on: self.source_switched.emit(program.key, on))

    def _add_remove_action(self, menu: QMenu, source: Path) -> QAction:
        # An ampersand in a path would else become a shortcut mark.
        name = display_name(str(source)).replace("&", "&&")
        action = menu.addAction(self.tr("Remove {path}").format(path=name))
        action.setToolTip(self.tr("Nothing is deleted from the disk."))
        action.triggered.connect(lambda: self.remove_source.emit(source))
        return action
