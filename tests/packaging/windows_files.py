"""Builds the smallest Windows programs: a header, one section, a table of imports."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_SECTION_ADDRESS, _SECTION_OFFSET = 0x2000, 0x400


def program_bytes(imports: Sequence[str], *, magic: int = 0x20B, mark: bytes = b"") -> bytes:
    """A DLL that is linked to ``imports``; ``mark`` goes where Wine puts its own."""
    table, names = b"", b""
    names_at = _SECTION_ADDRESS + 20 * (len(imports) + 1)
    for name in imports:
        table += struct.pack("<IIIII", 0, 0, 0, names_at + len(names), 0)
        names += name.encode("ascii") + b"\0"
    section = table + bytes(20) + names
    start = 0x80
    dos = (b"MZ" + bytes(0x3A) + struct.pack("<I", start) + mark).ljust(start, b"\0")
    optional = struct.pack("<H", magic).ljust(112, b"\0")
    optional += bytes(8) + struct.pack("<II", _SECTION_ADDRESS if imports else 0, len(table))
    optional = optional.ljust(240, b"\0")
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, len(optional), 0x2022)
    header = b".rdata".ljust(8, b"\0") + struct.pack(
        "<IIIIIIHHI",
        *(len(section), _SECTION_ADDRESS, len(section), _SECTION_OFFSET),
        *(0, 0, 0, 0, 0x40000040),
    )
    whole = dos + b"PE\0\0" + coff + optional + header
    return whole.ljust(_SECTION_OFFSET, b"\0") + section
