"""The Windows Python that is made on Linux: what is pinned, what is installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path, PureWindowsPath

import dev_system
import pytest
import windows_python
import wine_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made and run on Linux")


def test_the_pins_are_the_project_s_save_for_numpy() -> None:
    pins = windows_python.constraints().splitlines()
    assert [line for line in pins if line.startswith("numpy==")] == [windows_python.NUMPY]
    assert any(line.startswith("PySide6_Essentials==") for line in pins)


def test_everything_that_is_installed_is_pinned() -> None:
    pinned = {normal(line.partition("==")[0]) for line in windows_python.constraints().splitlines()}
    names = {normal(re.split("[<>=]", text)[0]) for text in windows_python.requirements()}
    assert names - pinned == set()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_llama_and_the_checkers_of_style_are_left_out() -> None:
    names = " ".join(windows_python.requirements())
    assert "pytest-qt" in names
    for left_out in ("llama", "mypy", "ruff", "types-"):
        assert left_out not in names


def test_what_python_reads_of_windows_is_installed_though_this_is_linux() -> None:
    assert {"colorama", "pefile", "pywin32-ctypes"} <= set(windows_python.requirements())


def test_wine_sees_this_machine_as_its_drive_z() -> None:
    expected = PureWindowsPath(r"Z:\home\a b\ü.gguf")
    assert wine_run.windows_path(Path("/home/a b/ü.gguf")) == expected


def test_what_wine_needs_has_a_package_everywhere() -> None:
    for need in (*dev_system.WINE.values(), dev_system.MINGW_C):
        for manager in ("apt-get", "dnf", "pacman"):
            assert need.package(manager)
