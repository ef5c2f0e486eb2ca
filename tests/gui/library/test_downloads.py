"""Getting a model: the box, the offers and their verdicts, pause, resume, cancel, refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QTableWidget, QWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.library.featured_models import FILE_NAME
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.memory.auto_placement import Machine
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.paths import app_paths
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile
from moelauncher.gui.library.download_dialog import DownloadDialog
from moelauncher.gui.library.downloads import Downloads
from moelauncher.gui.services import Services, no_hub
from moelauncher.hub.repository import Repositories
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.hub_server import HubServer, ServedFile
from tests.helpers.planned_models import GIB, gpu

REPO = "org/Tiny-GGUF"


def _not_asked(*_: object) -> None:
    raise AssertionError("an engine was asked for")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HubServer]:
    one = write_tiny_model(tmp_path / "served" / "Tiny-Q8_0.gguf", "moe", n_ff_exp=64)
    two = write_tiny_model(tmp_path / "served" / "Tiny-Q4_K_M.gguf", "moe")
    files = {file.name: ServedFile(file.read_bytes()) for file in (one, two)}
    with HubServer(repos={REPO: files}) as hub:
        yield hub


class _Desk:
    """Downloads under test, with their dialog."""

    def __init__(self, qtbot: QtBot, basedir: Path, make_hub: Callable[[], object]) -> None:
        self._qtbot = qtbot
        self.paths = app_paths(basedir)
        self.paths.config.mkdir(parents=True)
        (self.paths.config / FILE_NAME).write_text(
            f'[[model]]\nname = "Tiny"\nlink = "{REPO}:Q8_0"\nabout = "small"\n'
            '[[model]]\nname = "Gone"\nlink = "org/nothing:Q8_0"\n',
            encoding="utf-8",
        )
        services = Services(
            paths=self.paths,
            settings=Settings.load(self.paths.settings_file),
            state=StateFile(self.paths.window_file),
            make_engine=_not_asked,  # type: ignore[arg-type]
            dry_run=_not_asked,  # type: ignore[arg-type]
            tune=_not_asked,  # type: ignore[arg-type]
            hub=make_hub,  # type: ignore[arg-type]
        )
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.downloads = Downloads(self.window, services)
        machine = Machine(gpus=(gpu(8),), ram_free_bytes=8 * GIB, ram_total_bytes=8 * GIB)
        self.downloads.set_machine(machine, ContextSettings(n_ctx=1024))
        self.fetched: list[object] = []
        self.downloads.fetched.connect(self.fetched.append)
        self.downloads.open()

    @property
    def dialog(self) -> DownloadDialog:
        assert self.downloads.dialog is not None
        return self.downloads.dialog

    def wait(self, condition: Callable[[], bool]) -> None:
        self._qtbot.waitUntil(condition)

    def press(self, name: str) -> None:
        button = self.dialog.findChild(QPushButton, name)
        assert button is not None and button.isEnabled() and button.isVisible(), name
        button.click()

    def look(self, text: str) -> None:
        self.dialog.box.setText(text)
        self.press("hubLookButton")

    def verdicts(self) -> list[str]:
        return [offer.verdict for offer in self.dialog.offers()]


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path, server: HubServer) -> Iterator[_Desk]:
    shown = _Desk(
        qtbot,
        tmp_path / "base",
        lambda: Repositories(server.endpoint, wait=lambda seconds: None),
    )
    yield shown
    shown.downloads.close()
    shown.downloads.deleteLater()
    qtbot.wait(1)


def test_suggestions_are_judged_before_anything_is_fetched(desk: _Desk, server: HubServer) -> None:
    desk.wait(lambda: "" not in desk.verdicts())
    tiny, gone = desk.dialog.offers()
    assert (tiny.name, tiny.about) == ("Tiny  Q8_0", "small")
    assert (tiny.verdict, tiny.level) == ("fits on the GPU", "good")
    assert (gone.choice, gone.level) == (None, "bad")
    assert "no such repository" in gone.verdict
    assert not desk.paths.models.exists()
    table = desk.dialog.findChild(QTableWidget, "hubTable")
    assert table is not None
    assert "KiB" in table.item(0, 2).text()
    assert table.item(0, 3).text() == "fits on the GPU"


def test_a_repository_s_quantisations_with_sizes_and_verdicts(desk: _Desk) -> None:
    desk.look(REPO)
    desk.wait(lambda: desk.verdicts() == ["fits on the GPU"] * 2)
    assert [offer.name for offer in desk.dialog.offers()] == ["Q4_K_M", "Q8_0"]
    desk.look("")
    desk.wait(lambda: [offer.name for offer in desk.dialog.offers()][1:] == ["Gone"])


def test_one_is_fetched_and_told(desk: _Desk) -> None:
    desk.look(f"{REPO}:Q8_0")
    desk.wait(lambda: desk.verdicts() == ["fits on the GPU"])
    desk.press("hubDownloadButton")
    desk.wait(lambda: bool(desk.fetched))
    path = desk.fetched[0]
    assert isinstance(path, Path)
    assert path == desk.paths.models / "org" / "Tiny-GGUF" / "Tiny-Q8_0.gguf"
    assert load_facts(path).n_expert == 8
    assert desk.dialog.note.text() == "Tiny-Q8_0.gguf is complete."
    assert not desk.dialog.pause.isVisible()


def test_a_failed_download_can_be_resumed(desk: _Desk, server: HubServer) -> None:
    desk.look(f"{REPO}:Q8_0")
    desk.wait(lambda: desk.verdicts() == ["fits on the GPU"])
    server.cut_after_bytes, server.cuts_left = 0, 1000
    desk.press("hubDownloadButton")
    desk.wait(lambda: desk.dialog.pause.text() == "Resume")
    assert "goes on where it stopped" in desk.dialog.note.text()
    server.cuts_left = 0
    desk.press("hubPauseButton")
    desk.wait(lambda: bool(desk.fetched))


def test_pause_keeps_and_cancel_deletes(desk: _Desk, server: HubServer) -> None:
    desk.look(f"{REPO}:Q8_0")
    desk.wait(lambda: desk.verdicts() == ["fits on the GPU"])
    # A server so bad that there is time for both.
    server.cut_after_bytes, server.cuts_left = 100, 1_000_000
    desk.press("hubDownloadButton")
    parts = lambda: list(desk.paths.models.rglob("*.part"))  # noqa: E731
    desk.wait(lambda: bool(parts()))
    desk.press("hubPauseButton")
    assert desk.dialog.progress.text.startswith("Paused. Q8_0")
    desk.wait(lambda: not desk.downloads._one_at_a_time.locked())
    assert parts()
    desk.press("hubCancelButton")
    desk.wait(lambda: not parts() and not desk.downloads._jobs.busy("forget"))
    assert desk.fetched == []
    assert "deleted" in desk.dialog.note.text()
    assert not desk.dialog.cancel.isVisible()


def test_refusals_stand_in_the_dialog(desk: _Desk, server: HubServer) -> None:
    desk.look("no repository")
    assert "names no repository" in desk.dialog.note.text()
    server.status = 403
    desk.look(REPO)
    desk.wait(lambda: "licence" in desk.dialog.note.text())
    server.status = 401
    desk.look(REPO)
    desk.wait(lambda: "needs a login" in desk.dialog.note.text())


def test_without_the_package_the_dialog_says_what_to_install(qtbot: QtBot, tmp_path: Path) -> None:
    desk = _Desk(qtbot, tmp_path / "base", no_hub)
    desk.wait(lambda: "huggingface_hub" in desk.dialog.note.text())
    assert "pip install" in desk.dialog.note.text()
    desk.downloads.close()
    desk.downloads.deleteLater()
    qtbot.wait(1)
