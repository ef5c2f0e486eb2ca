"""What can be done with a model's file: show it in its folder, copy its path, trash it.

GUI thread; moving to the trash is a pool job, since it may copy across disks.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QDir, QFile, QObject, QProcess, QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from moelauncher.core.errors import LauncherError
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.trash_plan import TrashPlan, trash_plan
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes
from moelauncher.gui.jobs import JobRunner


class ModelActions(QObject):
    """Does what the row's menu asks for.

    Signals:
        message(str, str): text and level for the status line.
        trashed(object): the entry whose files are in the trash.
    """

    message = Signal(str, str)
    trashed = Signal(object)

    def __init__(self, window: QWidget, jobs: JobRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window = window
        self._jobs = jobs
        #: The model that is in memory: its files are in use.
        self.loaded_path: Callable[[], Path | None] = lambda: None
        self.question: QMessageBox | None = None

    def copy_path(self, entry: object) -> None:
        """Put the path on the clipboard."""
        if isinstance(entry, CatalogEntry):
            QGuiApplication.clipboard().setText(QDir.toNativeSeparators(str(entry.path)))
            self.message.emit(self.tr("The path is on the clipboard."), "info")

    def reveal(self, entry: object) -> None:
        """Open the folder of a model, the file selected where the system can do that."""
        if not isinstance(entry, CatalogEntry):
            return
        program, arguments = reveal_command(entry.path, sys.platform)
        if program and QProcess.startDetached(program, arguments)[0]:
            return
        folder = entry.path if entry.role == "folder" else entry.path.parent
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            text = self.tr("The folder cannot be opened: {path}").format(path=folder)
            self.message.emit(text, "warning")

    def trash(self, entry: object) -> None:
        """Ask, then move a model's files to the trash."""
        if not isinstance(entry, CatalogEntry):
            return
        if entry.path == self.loaded_path():
            text = self.tr("{name} is loaded: unload it first.").format(name=entry.name)
            self.message.emit(text, "warning")
            return
        self._jobs.start(
            "trash-plan",
            lambda report, cancelled: trash_plan(entry),
            lambda plan: self._ask(entry, plan),
            self._complain,
        )

    def _ask(self, entry: CatalogEntry, plan: object) -> None:
        assert isinstance(plan, TrashPlan)
        box = QMessageBox(self._window)
        box.setObjectName("trashQuestion")
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle(self.tr("Move to trash"))
        size = format_bytes(plan.size_bytes)
        if len(plan.files) > 1:
            text = self.tr("Move the {n} files of {name} ({size}) to the trash?").format(
                n=len(plan.files), name=entry.name, size=size
            )
        elif plan.files:
            text = self.tr("Move {name} ({size}) to the trash?").format(name=entry.name, size=size)
        else:
            text = self.tr("Remove the link {name}? What it leads to stays.").format(
                name=entry.name
            )
        # Names come from files: never taken for HTML.
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(text)
        box.setInformativeText(_file_list(plan))
        yes = box.addButton(self.tr("Move to trash"), QMessageBox.ButtonRole.DestructiveRole)
        yes.setObjectName("trashButton")
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        yes.clicked.connect(lambda: self._move(entry, plan))
        box.finished.connect(self._answered)
        self.question = box
        box.open()

    def _answered(self, _result: int) -> None:
        self.question = None

    def _move(self, entry: CatalogEntry, plan: TrashPlan) -> None:
        self._jobs.start(
            "trash",
            lambda report, cancelled: _move_to_trash(plan),
            lambda _: self._moved(entry, plan),
            self._complain,
        )

    def _moved(self, entry: CatalogEntry, plan: TrashPlan) -> None:
        text = self.tr("{name} is in the trash ({size}).").format(
            name=entry.name, size=format_bytes(plan.size_bytes)
        )
        self.message.emit(text, "info")
        self.trashed.emit(entry)

    def _complain(self, error: LauncherError) -> None:
        self.message.emit(error.sentence, "warning")


def reveal_command(path: Path, platform: str) -> tuple[str, list[str]]:
    """The program that opens a folder with ``path`` selected; "" where there is none for sure."""
    if platform == "win32":
        return "explorer.exe", ["/select,", str(path)]
    if platform == "darwin":
        return "/usr/bin/open", ["-R", str(path)]
    return "", []


def _file_list(plan: TrashPlan) -> str:
    shown = [display_name(str(file)) for file in (*plan.files, *plan.links)[:8]]
    more = len(plan.files) + len(plan.links) - len(shown)
    return "\n".join([*shown, *([f"… + {more}"] if more > 0 else [])])


def _move_to_trash(plan: TrashPlan) -> None:
    # Qt makes the trash itself, but not the folder above it, which a fresh account may lack.
    data = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericDataLocation)
    with contextlib.suppress(OSError):
        Path(data).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(plan.files):
        moved = QFile.moveToTrash(str(file))
        ok = moved[0] if isinstance(moved, tuple) else moved
        if ok:
            continue
        raise LauncherError(
            tr("{name} cannot be moved to the trash; {n} of {count} files were.").format(
                name=display_name(file.name), n=number, count=len(plan.files)
            )
            if number
            else tr("{name} cannot be moved to the trash.").format(name=display_name(file.name)),
            tr("Close other programs that use it, or delete it in its folder."),
        )
    for link in plan.links:
        try:
            link.unlink(missing_ok=True)
        except OSError as error:
            raise LauncherError(
                tr("The link {name} cannot be removed: {reason}.").format(
                    name=display_name(link.name), reason=error.strerror or str(error)
                )
            ) from error
