"""What a Windows file is linked to."""

from __future__ import annotations

from pathlib import Path

import pytest
import windows_dlls

from tests.packaging.windows_files import program_bytes


def test_imports_are_read_in_order_and_lower_case() -> None:
    data = program_bytes(["KERNEL32.dll", "Qt6Core.dll"])
    assert windows_dlls.imported_names(data) == ["kernel32.dll", "qt6core.dll"]


def test_a_file_may_be_linked_to_nothing() -> None:
    assert windows_dlls.imported_names(program_bytes([])) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"MZ",
        b"\x7fELF" + bytes(200),
        program_bytes(["a.dll"], magic=0x10B),
        program_bytes(["a.dll"])[:0x410],
    ],
)
def test_what_is_no_program_is_refused(data: bytes) -> None:
    with pytest.raises(windows_dlls.NoProgramError):
        windows_dlls.imported_names(data)


def test_every_cut_is_refused_or_read() -> None:
    whole = program_bytes(["kernel32.dll", "user32.dll"])
    for length in range(len(whole)):
        try:
            windows_dlls.imported_names(whole[:length])
        except windows_dlls.NoProgramError:
            continue


@pytest.mark.parametrize(
    "name", ["KERNEL32.dll", "api-ms-win-crt-math-l1-1-0.dll", "WINSPOOL.DRV", "icuuc.dll"]
)
def test_windows_brings(name: str) -> None:
    assert windows_dlls.is_system(name)


@pytest.mark.parametrize("name", ["vcruntime140.dll", "vulkan-1.dll", "libgomp-1.dll", "qt6.dll"])
def test_windows_does_not_bring(name: str) -> None:
    assert not windows_dlls.is_system(name)


def test_needs_that_are_not_met_are_named_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.dll").write_bytes(program_bytes(["B.dll", "user32.dll", "vcruntime140.dll"]))
    (tmp_path / "b.dll").write_bytes(program_bytes(["ntdll.dll"]))
    unmet = windows_dlls.unmet_needs(tmp_path.iterdir(), present=["a.dll", "b.DLL"])
    assert unmet == {"a.dll": {"vcruntime140.dll"}}


def test_wines_own_libraries_are_known() -> None:
    assert windows_dlls.is_of_wine(program_bytes([], mark=b"Wine builtin DLL"))
    assert not windows_dlls.is_of_wine(program_bytes([]))
