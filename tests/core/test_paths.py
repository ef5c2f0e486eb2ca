"""Where things are kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import app_paths, made, portable_folder, shortened


def test_a_base_folder_holds_everything(tmp_path: Path) -> None:
    paths = app_paths(tmp_path / "base")
    for field in dataclasses.fields(paths):
        assert getattr(paths, field.name).is_relative_to(tmp_path / "base")
    assert list(tmp_path.iterdir()) == []  # nothing is made until asked for


def test_a_relative_base_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert app_paths(Path("portable")).config == tmp_path / "portable" / "config"


def test_without_one_the_platform_decides() -> None:
    paths = app_paths()
    assert paths.config.is_absolute()
    assert "moelauncher" in str(paths.settings_file)


def test_in_tests_that_is_below_their_own_home(own_home: Path) -> None:
    paths = app_paths()
    for field in dataclasses.fields(paths):
        assert getattr(paths, field.name).is_relative_to(own_home)


def test_folders_are_made_on_demand(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert made(folder) == folder
    assert made(folder).is_dir()


def test_a_file_in_the_way_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("", encoding="utf-8")
    with pytest.raises(LauncherError, match="cannot be made") as caught:
        made(tmp_path / "a" / "b")
    assert "--basedir" in caught.value.hint


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write anywhere, so the system's answer is given for it.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(LauncherError, match="cannot be written"):
        made(tmp_path)


def test_home_is_shortened() -> None:
    home = Path.home()
    assert shortened(home / "models").replace("\\", "/") == "~/models"
    assert shortened(home) == "~"
    assert shortened(str(home) + "x") == str(home) + "x"


def test_a_package_with_a_folder_beside_it_is_portable(tmp_path: Path) -> None:
    program = tmp_path / "moelauncher"
    assert portable_folder(program, frozen=True, environ={}) is None
    (tmp_path / "portable").write_text("a file is no place", encoding="utf-8")
    assert portable_folder(program, frozen=True, environ={}) is None
    (tmp_path / "portable").unlink()
    (tmp_path / "portable").mkdir()
    assert portable_folder(program, frozen=True, environ={}) == tmp_path / "portable"
    # A checkout's Python lies in a folder that is not the program's.
    assert portable_folder(program, frozen=False, environ={}) is None


def test_a_portable_appimage_keeps_its_things_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "portable").mkdir()
    image = {"APPIMAGE": str(tmp_path / "MoE.AppImage")}
    mounted = Path("/tmp/.mount_MoE/usr/bin/moelauncher")
    assert portable_folder(mounted, frozen=True, environ=image) == tmp_path / "portable"
