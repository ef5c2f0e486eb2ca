"""What a Windows program or DLL asks for, read from the file itself, on any system.

Standard library only. A package must carry every DLL that its parts need and Windows has not;
and nothing of Wine, nor a stand-in that only tests need, may get into one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: On every Windows from 10 version 1809 on, the oldest that Qt 6.11 supports.
_SYSTEM = re.compile(
    r"""
    (api|ext)-ms-win-[\w-]+
    | advapi32 | authz | avrt | bcrypt | bcryptprimitives | cfgmgr32 | combase | comctl32
    | comdlg32 | crypt32 | d2d1 | d3d9 | d3d11 | d3d12 | dbghelp | dcomp | dnsapi | dsound
    | dwmapi | dwrite | dxgi | dxva2 | gdi32 | gdiplus | hid | icuuc | imm32 | iphlpapi
    | kernel32 | kernelbase | mfplat | mfuuid | mpr | mscoree | msimg32 | msvcrt | mswsock
    | ncrypt | netapi32 | ntdll | ole32 | oleacc | oleaut32 | opengl32 | pdh | powrprof
    | propsys | psapi | rpcrt4 | secur32 | setupapi | shcore | shell32 | shlwapi | ucrtbase
    | uiautomationcore | user32 | userenv | usp10 | uxtheme | version | wevtapi | winhttp
    | wininet | winmm | winspool\.drv | winusb | wintrust | wlanapi | ws2_32 | wsock32
    | wtsapi32 | xinput1_4
    """,
    re.VERBOSE,
)
_WINE_MARKS = (b"Wine builtin DLL", b"Wine placeholder DLL")
_IMPORT_ENTRY_BYTES = 20
_PE32_PLUS = 0x20B


@dataclass(frozen=True)
class _Section:
    address: int
    size: int
    offset: int


class NoProgramError(ValueError):
    """The file is no 64-bit Windows program or DLL."""


def imported_names(data: bytes) -> list[str]:
    """The DLLs that a program or DLL is linked to, in lower case, in its order.

    Those that it loads later (delayed or by name) are not among them. Raises
    :class:`NoProgramError`.
    """
    try:
        (start,) = struct.unpack_from("<I", data, 0x3C)
        if data[:2] != b"MZ" or data[start : start + 4] != b"PE\0\0":
            raise NoProgramError("no program")
        n_sections, header_bytes = struct.unpack_from("<H12xH", data, start + 6)
        (magic,) = struct.unpack_from("<H", data, start + 24)
        if magic != _PE32_PLUS:
            raise NoProgramError("not 64-bit")
        table, _ = struct.unpack_from("<II", data, start + 24 + 112 + 8)
        first = start + 24 + header_bytes
        sections = [_section(data, first + 40 * index) for index in range(n_sections)]
        names: list[str] = []
        if not table:
            return names
        at = _offset(sections, table)
        while True:
            (name,) = struct.unpack_from("<I", data, at + 12)
            if not name:
                return names
            names.append(_text(data, _offset(sections, name)).lower())
            at += _IMPORT_ENTRY_BYTES
    except struct.error as error:
        raise NoProgramError("cut short") from error


def _section(data: bytes, at: int) -> _Section:
    size, address, raw_size, offset = struct.unpack_from("<IIII", data, at + 8)
    return _Section(address, max(size, raw_size), offset)


def _offset(sections: Iterable[_Section], address: int) -> int:
    for section in sections:
        if section.address <= address < section.address + section.size:
            return address - section.address + section.offset
    raise NoProgramError("an address outside its sections")


def _text(data: bytes, at: int) -> str:
    text, end, _ = data[at : at + 260].partition(b"\0")
    if not end:
        raise NoProgramError("cut short")
    return text.decode("ascii", "replace")


def is_system(name: str) -> bool:
    """Whether Windows itself brings the DLL ``name``."""
    return _SYSTEM.fullmatch(name.lower().removesuffix(".dll")) is not None


def is_of_wine(data: bytes) -> bool:
    """Whether a DLL is one of Wine's own."""
    return any(data.startswith(mark, 0x40) for mark in _WINE_MARKS)


def unmet_needs(files: Iterable[Path], present: Iterable[str]) -> dict[str, set[str]]:
    """For each of ``files`` by its name: what it needs that is neither in ``present`` nor Windows'.

    Files without such needs are left out.
    """
    there = {name.lower() for name in present}
    unmet = {}
    for file in files:
        needed = imported_names(file.read_bytes())
        missing = {name for name in needed if name not in there and not is_system(name)}
        if missing:
            unmet[file.name] = missing
    return unmet
