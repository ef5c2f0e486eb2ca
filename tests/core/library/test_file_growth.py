"""Downloads told from cut files, and network drives from disks."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from moelauncher.core.library.file_growth import STILL_AFTER_S, FileGrowth
from moelauncher.core.library.slow_places import is_remote, network_places, slow_last

A = Path("/models/a.gguf")


def test_a_file_that_grows_is_growing_until_it_stands_still() -> None:
    growth = FileGrowth()
    assert not growth.look(A, 10, 0.0)
    assert growth.look(A, 20, 2.0)
    assert growth.look(A, 20, 2.0 + STILL_AFTER_S - 1)
    assert not growth.look(A, 20, 2.0 + STILL_AFTER_S)
    assert growth.look(A, 30, 100.0)


def test_a_cut_file_never_grows() -> None:
    growth = FileGrowth()
    assert [growth.look(A, 10, now) for now in (0.0, 2.0, 4.0)] == [False] * 3
    assert not growth.look(A, 5, 6.0)


def test_forgotten_files_begin_anew() -> None:
    growth = FileGrowth()
    growth.look(A, 10, 0.0)
    growth.keep_only([])
    assert not growth.look(A, 20, 1.0)


def test_network_mounts_are_told_by_their_type() -> None:
    table = (
        "/dev/sda1 / ext4 rw 0 0\n"
        "nas:/m /mnt/my\\040nas nfs4 rw 0 0\n"
        "//pc/share /media/pc cifs rw 0 0\n"
        "me@host:/ /home/me/far fuse.sshfs rw 0 0\n"
        "odd line\n"
    )
    places = network_places(table)
    assert places == ("/mnt/my nas", "/media/pc", "/home/me/far")
    assert is_remote(PurePosixPath("/mnt/my nas/models"), places)
    assert is_remote(PurePosixPath("/media/pc"), places)
    assert not is_remote(PurePosixPath("/media/pc2"), places)
    assert not is_remote(PurePosixPath("/home/me"), places)
    assert is_remote(Path("//server/share"), ())


def test_a_connected_drive_of_windows_is_remote() -> None:
    drives = ("Z:",)
    assert is_remote(PureWindowsPath(r"z:\models\a.gguf"), drives)
    assert not is_remote(PureWindowsPath(r"C:\models"), drives)
    assert is_remote(PureWindowsPath(r"\\server\share\a.gguf"), ())


@pytest.mark.skipif(sys.platform != "win32", reason="drives are connected on Windows")
def test_connected_drives_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    import winreg

    name = r"Network\Q"
    winreg.CreateKey(winreg.HKEY_CURRENT_USER, name)
    try:
        assert slow_last([Path("Q:/m"), Path("C:/m")]) == [Path("C:/m"), Path("Q:/m")]
    finally:
        winreg.DeleteKey(winreg.HKEY_CURRENT_USER, name)


def test_local_places_keep_their_order(tmp_path: Path) -> None:
    paths = [tmp_path / "b", Path("//server/share"), tmp_path / "a"]
    assert slow_last(paths) == [tmp_path / "b", tmp_path / "a", Path("//server/share")]
