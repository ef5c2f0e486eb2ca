"""The library: what appears, grows, goes, is switched off, hidden, or thrown away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QMenu, QMessageBox, QPushButton, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from moelauncher.core.library.library_settings import hidden_models, skipped_sources
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.gui.library import library_scan, model_actions
from moelauncher.gui.library.library_scan import scan_sources
from moelauncher.gui.library.model_list_model import ModelListModel
from moelauncher.gui.library.model_row_delegate import ModelRowDelegate
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.library_window import LibraryWindow
from tests.helpers.planned_models import GIB, gpu


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "models"
    write_tiny_model(place / "a.gguf", "moe", name="Alpha")
    return place


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, folder: Path) -> Iterator[LibraryWindow]:
    shown = LibraryWindow(qtbot, tmp_path / "base", [folder])
    shown.scan()
    yield shown
    shown.close()


def test_a_finished_download_appears_by_itself(window: LibraryWindow, folder: Path) -> None:
    assert list(window.entries()) == ["a.gguf"]
    write_tiny_model(folder / "b.gguf", "dense", name="Beta")
    window.wait(lambda: "b.gguf" in window.entries() and window.entries()["b.gguf"].offered)


def test_the_list_of_the_last_start_is_there_before_any_folder_is_looked_at(
    qtbot: QtBot, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = LibraryWindow(qtbot, tmp_path / "base", [folder])
    try:
        write_tiny_model(folder / "b.gguf", "dense", name="Beta")
        first.scan()
        before = first.entries()
    finally:
        first.close()
    (folder / "a.gguf").unlink()
    write_tiny_model(folder / "c.gguf", "dense", name="Gamma")
    gate = threading.Event()
    looked = library_scan.scan

    def slow(*places: object, **options: object) -> Iterator[object]:
        gate.wait(30)
        yield from looked(*places, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(library_scan, "scan", slow)
    second = LibraryWindow(qtbot, tmp_path / "base", [folder])
    try:
        second.library.show_model(folder / "b.gguf")
        second.wait(lambda: second.entries() == before)
        selected = second.pane.selected()
        assert selected is not None and selected.path.name == "b.gguf"
        assert second.library.is_scanning
        gate.set()
        second.wait(lambda: sorted(second.entries()) == ["b.gguf", "c.gguf"])
        assert second.pane.selected() == selected
    finally:
        gate.set()
        second.close()


def test_one_in_a_new_folder_appears_too(window: LibraryWindow, folder: Path) -> None:
    deep = folder / "new" / "deeper"
    deep.mkdir(parents=True)
    write_tiny_model(deep / "c.gguf", "dense")
    window.wait(lambda: "c.gguf" in window.entries() and window.entries()["c.gguf"].offered)


def test_a_deleted_file_goes(window: LibraryWindow, folder: Path) -> None:
    (folder / "a.gguf").unlink()
    window.wait(lambda: window.entries() == {})


def test_a_growing_file_says_so_until_it_is_whole(window: LibraryWindow, folder: Path) -> None:
    whole = write_tiny_model(folder.parent / "elsewhere" / "b.gguf", "dense").read_bytes()
    growing = folder / "b.gguf"
    growing.write_bytes(whole[: len(whole) // 2])
    window.scan()
    assert window.entries()["b.gguf"].problem.startswith("The file is cut short")

    def look() -> None:
        # As the clock does every two seconds.
        window.library._growing.look()
        window.wait(lambda: not window.library._scan_jobs.busy("growth"))

    look()
    assert window.entries()["b.gguf"].role != "download"
    with growing.open("ab") as file:
        file.write(whole[len(whole) // 2 : -1000])
    look()
    entry = window.entries()["b.gguf"]
    assert entry.role == "download"
    assert entry.problem.startswith("Still downloading: ")
    assert entry.problem.count("KiB") == 2
    assert not entry.offered
    with growing.open("ab") as file:
        file.write(whole[-1000:])
    look()
    assert window.entries()["b.gguf"].offered
    assert any("is complete" in text for text in window.messages)


def test_a_browser_s_part_file_becomes_a_model(window: LibraryWindow, folder: Path) -> None:
    whole = write_tiny_model(folder.parent / "elsewhere" / "b.gguf", "dense").read_bytes()
    part = folder / "b.gguf.part"
    part.write_bytes(whole)
    window.wait(lambda: "b.gguf.part" in window.entries())
    assert window.entries()["b.gguf.part"].problem == "This download is not finished."
    part.rename(folder / "b.gguf")
    window.wait(lambda: "b.gguf" in window.entries() and "b.gguf.part" not in window.entries())
    assert window.entries()["b.gguf"].offered


def test_other_programs_are_shown_and_switched(
    window: LibraryWindow, own_home: Path, qtbot: QtBot
) -> None:
    write_tiny_model(own_home / ".lmstudio" / "models" / "o" / "n" / "studio.gguf", "dense")
    window.scan()
    assert "studio.gguf" in window.entries()
    menu = QMenu()
    qtbot.addWidget(menu)
    window.pane.menus.fill_folder_menu(menu)
    (action,) = [action for action in menu.actions() if action.text() == "LM Studio"]
    assert action.isChecked()
    assert "studio.gguf" not in action.toolTip() and "models" in action.toolTip()
    action.setChecked(False)
    window.wait(lambda: "studio.gguf" not in window.entries())
    assert skipped_sources(window.settings) == {"lm_studio"}
    window.pane.menus.fill_folder_menu(menu)
    (action,) = [action for action in menu.actions() if action.text() == "LM Studio"]
    action.setChecked(True)
    window.wait(lambda: "studio.gguf" in window.entries())


def _row_menu(window: LibraryWindow, qtbot: QtBot, name: str) -> dict[str, object]:
    menu = QMenu()
    qtbot.addWidget(menu)
    window.pane.menus.fill_row_menu(menu, window.entries()[name])
    window.kept_menu = menu  # type: ignore[attr-defined]
    return {action.text(): action for action in menu.actions() if action.text()}


def test_a_row_can_be_taken_away_and_put_back(
    window: LibraryWindow, folder: Path, qtbot: QtBot
) -> None:
    _row_menu(window, qtbot, "a.gguf")["Remove from list"].trigger()  # type: ignore[attr-defined]
    assert window.entries() == {}
    assert (folder / "a.gguf").is_file()
    assert hidden_models(window.settings) == {folder / "a.gguf"}
    window.scan()
    assert window.entries() == {}
    menu = QMenu()
    qtbot.addWidget(menu)
    window.pane.menus.fill_folder_menu(menu)
    (back,) = [a for a in menu.actions() if a.text() == "List the 1 removed models again"]
    back.trigger()
    window.wait(lambda: "a.gguf" in window.entries())


def test_the_path_goes_to_the_clipboard(window: LibraryWindow, folder: Path, qtbot: QtBot) -> None:
    _row_menu(window, qtbot, "a.gguf")["Copy path"].trigger()  # type: ignore[attr-defined]
    assert Path(QGuiApplication.clipboard().text()) == folder / "a.gguf"


def test_the_folder_is_shown_with_the_file_selected_where_that_is_possible() -> None:
    path = Path("/models/a.gguf")
    assert model_actions.reveal_command(path, "win32") == ("explorer.exe", ["/select,", str(path)])
    assert model_actions.reveal_command(path, "darwin")[1] == ["-R", str(path)]
    assert model_actions.reveal_command(path, "linux")[0] == ""


def _asked(window: LibraryWindow, qtbot: QtBot, name: str) -> QMessageBox:
    _row_menu(window, qtbot, name)["Move to trash…"].trigger()  # type: ignore[attr-defined]
    window.wait(lambda: window.library.actions.question is not None)
    question = window.library.actions.question
    assert question is not None
    return question


def _press(question: QMessageBox, name: str) -> None:
    button = question.findChild(QPushButton, name)
    assert button is not None
    button.click()


def test_the_trash_is_asked_for_and_takes_all_parts(
    window: LibraryWindow, folder: Path, own_home: Path, qtbot: QtBot
) -> None:
    first = write_tiny_model(folder / "big.gguf", "moe", name="<b>Big</b>", split_max_tensors=20)
    window.scan()
    n_files = len(window.entries()[first.name].files)
    question = _asked(window, qtbot, first.name)
    assert f"Move the {n_files} files of <b>Big</b> (" in question.text()
    assert "KiB" in question.text()
    assert first.name in question.informativeText()
    question.reject()
    assert first.is_file()
    _press(_asked(window, qtbot, first.name), "trashButton")
    window.wait(lambda: first.name not in window.entries())
    assert list(folder.glob("big-*")) == []
    assert any("is in the trash" in text for text in window.messages)


def test_a_loaded_model_is_not_thrown_away(
    window: LibraryWindow, folder: Path, qtbot: QtBot
) -> None:
    window.library.actions.loaded_path = lambda: folder / "a.gguf"
    _row_menu(window, qtbot, "a.gguf")["Move to trash…"].trigger()  # type: ignore[attr-defined]
    assert window.messages[-1] == "Alpha is loaded: unload it first."
    assert window.library.actions.question is None


def test_rows_are_judged_for_this_machine_and_again_when_it_changes(
    window: LibraryWindow, folder: Path
) -> None:
    def verdict() -> tuple[str, str]:
        row = window.pane.list.model().index(0, 0).data(ModelListModel.ROW)
        return row.verdict, row.level

    machine = Machine(gpus=(gpu(8),), ram_free_bytes=8 * GIB, ram_total_bytes=8 * GIB)
    window.library.set_machine(machine, ContextSettings(n_ctx=2048))
    window.wait(lambda: verdict() == ("fits on the GPU", "good"))
    nothing = Machine(gpus=(), ram_free_bytes=8 * GIB, ram_total_bytes=8 * GIB)
    window.library.set_machine(nothing, ContextSettings(n_ctx=2048))
    window.wait(lambda: verdict() == ("fits in RAM, runs on the CPU", "good"))
    # What llama.cpp refused stays refused, whatever the forecast says.
    window.library.refuse(folder / "a.gguf", "no such tensor")
    window.library.set_machine(machine, ContextSettings(n_ctx=1024))
    window.wait(lambda: not window.library._verdicts._quiet.isActive())
    assert verdict() == ("no such tensor", "bad")


def test_quantisations_lie_under_one_name(window: LibraryWindow, folder: Path) -> None:
    for number, label in enumerate(("Q8_0", "Q4_K_M", "UD-IQ2_M")):
        write_tiny_model(
            folder / f"Beta-{label}.gguf", "moe", name="Beta", n_ff_exp=32 * (3 - number)
        )
    window.scan()
    model = window.pane.list.model()
    delegate = window.pane.list.itemDelegate()
    assert isinstance(delegate, ModelRowDelegate)
    places = [
        (model.index(row, 0).data(), delegate.place_in_group(model.index(row, 0)))
        for row in range(model.rowCount())
    ]
    assert places == [("Alpha", "alone"), ("Beta", "first"), ("Beta", "later"), ("Beta", "later")]
    delegate = window.pane.list.itemDelegate()
    heights = [
        delegate.sizeHint(QStyleOptionViewItem(), model.index(row, 0)).height()
        for row in range(model.rowCount())
    ]
    assert heights[2] == heights[3] < heights[0] < heights[1]
    # A filter that leaves one of them leaves a row that says everything itself.
    window.pane.filter.setText("UD-IQ2")
    assert delegate.place_in_group(model.index(0, 0)) == "alone"
    window.pane.filter.clear()
    image = QImage(272, 200, QImage.Format.Format_RGB32)
    option = QStyleOptionViewItem()
    for row in range(model.rowCount()):
        option.rect = QRect(0, 0, 272, heights[row])
        painter = QPainter(image)
        delegate.paint(painter, option, model.index(row, 0))
        painter.end()


def test_a_scan_that_runs_is_not_begun_again(
    window: LibraryWindow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, calls = threading.Event(), []

    def slow(*arguments: object, **options: object) -> object:
        calls.append(1)
        gate.wait(30)
        return scan_sources(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("moelauncher.gui.library.library.scan_sources", slow)
    window.library.refresh()
    window.wait(lambda: bool(calls))
    assert window.library.is_scanning
    # The window comes to the front, and a folder changes.
    window.library._application_state(Qt.ApplicationState.ApplicationActive)
    window.library._look_again()
    assert not window.pane.refresh_button.isEnabled()
    gate.set()
    window.wait(window.pane.refresh_button.isEnabled)
    assert len(calls) == 1
    # The change is looked at once the scan is over.
    window.wait(lambda: len(calls) == 2)
