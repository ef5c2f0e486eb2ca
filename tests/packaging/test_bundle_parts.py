"""What goes into a bundle and what stays out."""

from __future__ import annotations

import ast
from pathlib import Path

import bundle_parts
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name",
    [
        "PySide6/Qt/lib/libQt6Quick.so.6",
        "PySide6/Qt6Qml.dll",
        "PySide6/Qt/plugins/platforms/libqeglfs.so",
        "PySide6/Qt/plugins/platformthemes/libqgtk3.so",
        "PySide6/Qt/plugins/imageformats/libqtiff.so",
        "PySide6\\plugins\\tls\\qopensslbackend.dll",
        "PySide6/opengl32sw.dll",
        "PySide6/Qt/translations/qtbase_de.qm",
        "numpy/__init__.pyi",
        "libvulkan.so.1",
    ],
)
def test_unused(name: str) -> None:
    assert bundle_parts.is_unused(name)


@pytest.mark.parametrize(
    "name",
    [
        "PySide6/Qt/lib/libQt6Widgets.so.6",
        "PySide6/Qt/lib/libQt6Network.so.6",
        "PySide6/Qt/plugins/platforms/libqxcb.so",
        "PySide6/Qt/plugins/platforms/libqoffscreen.so",
        "PySide6/plugins/platforms/qwindows.dll",
        "PySide6/Qt/plugins/platforms/libqwayland.so",
        "PySide6/Qt/plugins/iconengines/libqsvgicon.so",
        "PySide6/Qt/plugins/platformthemes/libqxdgdesktopportal.so",
        "llama_cpp/lib/libggml-vulkan.so",
        "moelauncher/_resources/icons/moelauncher.svg",
    ],
)
def test_used(name: str) -> None:
    assert not bundle_parts.is_unused(name)


def test_libraries_that_only_dropped_parts_needed_go_too() -> None:
    needs = {"app": ["libQt.so.6"], "qt": ["libz.so.1"], "gtk": ["libpango.so.0"], "pango": []}
    entries = [
        ("PySide6/Qt/lib/libQt.so.6", "qt", "BINARY"),
        ("libz.so.1", "z", "BINARY"),
        ("libpango.so.0", "pango", "BINARY"),
        ("libharfbuzz.so.0", "harfbuzz", "BINARY"),
        ("libgomp.so.1", "gomp", "BINARY"),
        ("libpython3.11.so.1.0", "python", "BINARY"),
        ("readme.txt", "readme", "DATA"),
    ]
    needs["pango"] = ["libharfbuzz.so.0"]
    kept = bundle_parts.without_orphans(
        entries, lambda source: needs.get(source, []), always=["libgomp.so.1"]
    )
    assert [Path(name).name for name, _, _ in kept] == [
        "libQt.so.6",
        "libz.so.1",
        "libgomp.so.1",
        "libpython3.11.so.1.0",
        "readme.txt",
    ]


def test_nothing_that_the_program_imports_is_left_out() -> None:
    imported = set()
    for file in (ROOT / "moelauncher").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    assert "PySide6.QtNetwork" in imported
    assert not imported & set(bundle_parts.UNUSED_PACKAGES)


@pytest.mark.parametrize(
    "name", ["icuuc.dll", "_internal/PySide6/icuuc.dll", "a\\ICUUC.DLL", "icudt74.dll"]
)
def test_a_library_of_windows_is_a_stand_in_and_stays_out(name: str) -> None:
    assert bundle_parts.is_stand_in(name) and bundle_parts.is_unused(name)


@pytest.mark.parametrize("name", ["icuuc.dll.txt", "qicu.dll", "plugins/imageformats/qico.dll"])
def test_others_are_no_stand_ins(name: str) -> None:
    assert not bundle_parts.is_stand_in(name)
