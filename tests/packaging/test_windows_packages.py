"""The Windows packages, as far as they can be tried without PyInstaller and a long compression."""

from __future__ import annotations

import ast
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import windows_packages
from dev_console import DevError

from tests.packaging.windows_files import program_bytes


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "moelauncher"
    (folder / "_internal" / "llama_cpp" / "lib").mkdir(parents=True)
    (folder / "moelauncher.exe").write_bytes(program_bytes(["python311.dll", "user32.dll"]))
    (folder / "_internal" / "python311.dll").write_bytes(program_bytes([]))
    lib = folder / "_internal" / "llama_cpp" / "lib"
    (lib / "ggml-vulkan.dll").write_bytes(program_bytes(["vulkan-1.dll"]))
    return folder


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.1.0", (0, 1, 0, 0)), ("1.2", (1, 2, 0, 0)), ("1.2.3rc4", (1, 2, 3, 0))],
)
def test_version_as_windows_wants_it(version: str, numbers: tuple[int, ...]) -> None:
    assert windows_packages.version_numbers(version) == numbers


def test_version_resource_is_an_expression_that_names_the_version() -> None:
    text = windows_packages.version_resource("1.2.3")
    tree = ast.parse(text.strip(), mode="eval")
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {"1.2.3", "MoE Launcher", "ProductVersion"} <= strings


def test_a_whole_bundle_passes(bundle: Path) -> None:
    windows_packages.check_bundle(bundle)


def test_a_stand_in_for_windows_own_library_is_refused(bundle: Path) -> None:
    (bundle / "_internal" / "icuuc.dll").write_bytes(program_bytes([]))
    with pytest.raises(DevError, match=r"must not be in the bundle: _internal/icuuc\.dll"):
        windows_packages.check_bundle(bundle)


def test_a_library_of_wine_is_refused(bundle: Path) -> None:
    file = bundle / "_internal" / "ucrtbase.dll"
    file.write_bytes(program_bytes([], mark=b"Wine builtin DLL"))
    with pytest.raises(DevError, match="libraries of Wine: ucrtbase"):
        windows_packages.check_bundle(bundle)


def test_a_missing_library_is_named(bundle: Path) -> None:
    (bundle / "_internal" / "python311.dll").unlink()
    with pytest.raises(DevError, match=r"lacks libraries: .*python311\.dll"):
        windows_packages.check_bundle(bundle)


def test_a_path_too_long_for_windows_is_refused(bundle: Path) -> None:
    (bundle / "_internal" / ("x" * 150)).touch()
    with pytest.raises(DevError, match="too long"):
        windows_packages.check_bundle(bundle)


def test_the_zip_holds_the_files_under_one_folder(bundle: Path, tmp_path: Path) -> None:
    made = windows_packages.make_zip(bundle, tmp_path / "a.zip", "moelauncher-1-windows")
    with zipfile.ZipFile(made) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        program = archive.read("moelauncher-1-windows/moelauncher.exe")
    assert {name.split("/")[0] for name in names} == {"moelauncher-1-windows"}
    assert program == (bundle / "moelauncher.exe").read_bytes()
    assert len(names) == 3


def test_only_what_was_installed_is_removed_and_folders_last() -> None:
    lines = windows_packages.removals(["b.exe", "in/a.dll", "in/deep/c$.dll"]).splitlines()
    assert lines == [
        'Delete "$INSTDIR\\b.exe"',
        'Delete "$INSTDIR\\in\\a.dll"',
        'Delete "$INSTDIR\\in\\deep\\c$$.dll"',
        'RMDir "$INSTDIR\\in\\deep"',
        'RMDir "$INSTDIR\\in"',
    ]


def test_removing_never_touches_the_models() -> None:
    script = (windows_packages.TEMPLATES / "installer.nsi").read_text(encoding="utf-8")
    whole = re.findall(r"RMDir /r (.+)", script)
    assert sorted(set(whole)) == [
        '"$LOCALAPPDATA\\moelauncher\\$1"',
        '"$LOCALAPPDATA\\moelauncher\\Cache"',
    ]
    assert '${AndIf} $1 != "models"' in script


@pytest.mark.skipif(shutil.which("makensis") is None, reason="NSIS is not installed")
def test_the_installer_compiles_without_a_warning(bundle: Path, tmp_path: Path) -> None:
    icon = tmp_path / "moelauncher.ico"
    # One picture of one pixel.
    icon.write_bytes(
        bytes.fromhex(
            "0000010001000101000001002000300000001600000028000000010000000200000001002000"
        )
        + bytes(4 + 4 + 16 + 4 + 4)
    )
    made = windows_packages.make_installer(
        bundle, tmp_path / "a-setup.exe", "1.2.3", icon, tmp_path
    )
    assert made.read_bytes()[:2] == b"MZ"
