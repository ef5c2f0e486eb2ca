"""The program's own files are found, wherever it was installed."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from moelauncher.core import resources
from moelauncher.core.errors import LauncherError


def test_icon_is_an_svg_picture():
    root = ElementTree.fromstring(resources.read_text_resource("icons/moelauncher.svg"))
    assert root.tag.endswith("svg")
    assert root.get("viewBox")


def test_desktop_entry_starts_the_window_and_names_the_icon():
    lines = resources.read_text_resource("desktop/moelauncher.desktop").splitlines()
    assert lines[0] == "[Desktop Entry]"
    assert "Exec=moelauncher-window %f" in lines
    assert "Icon=moelauncher" in lines


def test_installed_tree_is_read_from_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "moelauncher"
    shutil.copytree(resources.resource_path("icons"), package / "_resources" / "icons")
    monkeypatch.setattr(resources, "_PACKAGE", package)
    path = resources.resource_path("icons/moelauncher.svg")
    assert path == package / "_resources" / "icons" / "moelauncher.svg"


def test_missing_file_is_a_sentence():
    with pytest.raises(LauncherError) as caught:
        resources.read_text_resource("icons/none.svg")
    assert "icons/none.svg" in caught.value.sentence
    assert "Install" in caught.value.hint
