"""Each missing thing names the package that brings it, on each family of systems."""

from __future__ import annotations

import sys

import dev_system
import pytest
from dev_console import DevError

linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="system packages are a matter of Linux"
)


@linux_only
def test_missing_library_names_its_package():
    absent = {"libEGL.so.1", "libxcb-cursor.so.0"}
    table = dev_system.QT_LIBRARIES | dev_system.X11_LIBRARIES
    needs = dev_system.missing_libraries(table, found=lambda name: name not in absent)
    assert dev_system.packages_of(needs, "apt-get") == ["libegl1", "libxcb-cursor0"]
    assert dev_system.packages_of(needs, "pacman") == ["libglvnd", "xcb-util-cursor"]


def test_loader_is_really_asked():
    assert not dev_system.loads("libno-such-library.so.7")


def test_advice_is_one_command_to_copy():
    needs = [dev_system.COMPILER, dev_system.VENV]
    text = dev_system.advice(needs, "apt-get", as_root=False)
    assert "a C++ compiler" in text
    assert "sudo apt-get install --yes --no-install-recommends build-essential python3-venv" in text
    assert "sudo" not in dev_system.advice(needs, "apt-get", as_root=True)


def test_unknown_system_still_gets_names():
    text = dev_system.advice([dev_system.COMPILER], None, as_root=False)
    assert "build-essential" in text


def test_each_package_is_installed_once():
    needs = [dev_system.QT_LIBRARIES["libEGL.so.1"], dev_system.QT_LIBRARIES["libGL.so.1"]]
    assert dev_system.packages_of(needs, "pacman") == ["libglvnd"]


@linux_only
def test_nothing_is_installed_unasked_by_a_user_who_is_not_root(tmp_path, monkeypatch):
    monkeypatch.setattr(dev_system.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(dev_system, "package_manager", lambda: "apt-get")
    with pytest.raises(DevError, match=r"sudo apt-get install .* build-essential"):
        dev_system.provide([dev_system.COMPILER], yes=False, log=tmp_path / "log.txt")


@linux_only
def test_root_on_another_system_is_asked_too(tmp_path, monkeypatch):
    monkeypatch.setattr(dev_system.os, "geteuid", lambda: 0)
    monkeypatch.setattr(dev_system, "package_manager", lambda: "dnf")
    with pytest.raises(DevError, match=r"dnf install .* gcc-c"):
        dev_system.provide([dev_system.COMPILER], yes=False, log=tmp_path / "log.txt")


def test_windows_without_a_compiler_hears_of_both_ways(tmp_path, monkeypatch):
    monkeypatch.setattr(dev_system.sys, "platform", "win32")
    with pytest.raises(DevError) as caught:
        dev_system.provide([dev_system.COMPILER], yes=False, log=tmp_path / "log.txt")
    assert "Build Tools" in str(caught.value)
    assert "--wheels vulkan" in str(caught.value)


@linux_only
@pytest.mark.parametrize(
    ("variables", "shown"),
    [({}, False), ({"DISPLAY": ":0"}, True), ({"WAYLAND_DISPLAY": "wayland-0"}, True)],
)
def test_display_is_told_by_the_session(monkeypatch, variables, shown):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert dev_system.has_display() is shown


@linux_only
def test_font_is_missing_until_a_font_file_is_there(tmp_path):
    (tmp_path / "readme.txt").write_text("no font", encoding="utf-8")
    assert dev_system.missing_fonts([tmp_path]) == [dev_system.FONT]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "Some.TTF").write_bytes(b"")
    assert dev_system.missing_fonts([tmp_path]) == []
