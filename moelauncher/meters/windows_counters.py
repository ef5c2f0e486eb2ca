"""The Windows calls behind ``windows_pdh.py`` and ``windows_faults.py``: PDH, and DXGI adapters.

Thin on purpose: nothing here decides anything. Importing it works everywhere; making a
:class:`WindowsCounters` works on Windows only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PDH_MORE_DATA = 0x800007D2
_PDH_FMT_LARGE = 0x00000400
_DXGI_ADAPTER_FLAG_SOFTWARE = 2
#: Status of a value: valid data, new data.
_SOUND = (0, 1)


@dataclass(frozen=True)
class Adapter:
    """A graphics adapter as DXGI names it; ``luid`` is high << 32 | low."""

    luid: int
    name: str
    dedicated_bytes: int


class _CounterValue(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE with its union read as LONGLONG."""

    _fields_ = [("status", ctypes.c_uint32), ("value", ctypes.c_int64)]


class _CounterItem(ctypes.Structure):
    """PDH_FMT_COUNTERVALUE_ITEM_W."""

    _fields_ = [("name", ctypes.c_wchar_p), ("value", _CounterValue)]


class _RawCounter(ctypes.Structure):
    """PDH_RAW_COUNTER."""

    _fields_ = [
        ("status", ctypes.c_uint32),
        ("time_low", ctypes.c_uint32),
        ("time_high", ctypes.c_uint32),
        ("first", ctypes.c_int64),
        ("second", ctypes.c_int64),
        ("multi_count", ctypes.c_uint32),
    ]


class _Luid(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint32), ("high", ctypes.c_int32)]


class _AdapterDescription(ctypes.Structure):
    """DXGI_ADAPTER_DESC1."""

    # Windows' wide character is two bytes, which c_wchar is only there.
    _fields_ = [
        ("description", ctypes.c_uint16 * 128),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("subsystem_id", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
        ("dedicated_video", ctypes.c_size_t),
        ("dedicated_system", ctypes.c_size_t),
        ("shared_system", ctypes.c_size_t),
        ("luid", _Luid),
        ("flags", ctypes.c_uint32),
    ]


#: IID_IDXGIFactory1 {770aae78-f26f-4dba-a829-253c83d1b387} as it lies in memory.
_IID_FACTORY1 = bytes.fromhex("78ae0a776ff2ba4da829253c83d1b387")


class WindowsCounters:
    """An open PDH query over ``paths``. Raises OSError where Windows refuses it."""

    def __init__(self, paths: Sequence[str]) -> None:
        windll: Any = getattr(ctypes, "WinDLL", None)
        if windll is None:
            raise OSError("performance counters exist on Windows only")
        self._pdh: Any = windll("pdh")
        # A status is an unsigned 32-bit number; the default would make errors negative.
        for name in (
            "PdhOpenQueryW",
            "PdhAddEnglishCounterW",
            "PdhCollectQueryData",
            "PdhGetFormattedCounterArrayW",
            "PdhGetRawCounterValue",
            "PdhCloseQuery",
        ):
            getattr(self._pdh, name).restype = ctypes.c_uint32
        self._windll = windll
        self._query = ctypes.c_void_p()
        _check(self._pdh.PdhOpenQueryW(None, ctypes.c_size_t(0), ctypes.byref(self._query)))
        self._counters: dict[str, ctypes.c_void_p] = {}
        for path in paths:
            counter = ctypes.c_void_p()
            status = self._pdh.PdhAddEnglishCounterW(
                self._query, ctypes.c_wchar_p(path), ctypes.c_size_t(0), ctypes.byref(counter)
            )
            if status == 0:  # one that this Windows lacks leaves its numbers unknown
                self._counters[path] = counter
        if not self._counters:
            self.close()
            raise OSError("this Windows has none of these counters")

    def collect(self) -> Mapping[str, Mapping[str, int]]:
        """All counters of one moment."""
        _check(self._pdh.PdhCollectQueryData(self._query))
        return {path: self._values(counter) for path, counter in self._counters.items()}

    def collect_raw(self) -> dict[str, int]:
        """What each counter without instances has counted so far, all of one moment."""
        _check(self._pdh.PdhCollectQueryData(self._query))
        found = {}
        for path, counter in self._counters.items():
            raw = _RawCounter()
            status = self._pdh.PdhGetRawCounterValue(counter, None, ctypes.byref(raw))
            if status == 0 and raw.status in _SOUND:
                found[path] = int(raw.first)
        return found

    def close(self) -> None:
        """Close the query."""
        self._pdh.PdhCloseQuery(self._query)

    def _values(self, counter: ctypes.c_void_p) -> dict[str, int]:
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)

        def ask(buffer: Any) -> int:
            return int(
                self._pdh.PdhGetFormattedCounterArrayW(
                    counter, _PDH_FMT_LARGE, ctypes.byref(size), ctypes.byref(count), buffer
                )
            )

        status = ask(None)
        # Programs come and go between the two calls, so the size can be outdated at once.
        for _ in range(4):
            if status != _PDH_MORE_DATA:
                break
            buffer = (ctypes.c_byte * size.value)()
            status = ask(buffer)
            if status == 0:
                items = ctypes.cast(buffer, ctypes.POINTER(_CounterItem))
                return {
                    items[i].name: items[i].value.value
                    for i in range(count.value)
                    if items[i].value.status in _SOUND
                }
        return {}

    def adapters(self) -> list[Adapter]:
        """Hardware adapters, in DXGI's order."""
        create: Any = self._windll("dxgi").CreateDXGIFactory1
        create.restype = ctypes.c_int32
        factory = ctypes.c_void_p()
        iid = (ctypes.c_byte * 16).from_buffer_copy(_IID_FACTORY1)
        if create(iid, ctypes.byref(factory)) != 0:
            return []
        found: list[Adapter] = []
        try:
            index = 0
            while True:
                adapter = ctypes.c_void_p()
                # IDXGIFactory1::EnumAdapters1 is entry 12 of the table.
                if _call(factory, 12, ctypes.c_uint32(index), ctypes.byref(adapter)) != 0:
                    return found
                index += 1
                try:
                    description = _AdapterDescription()
                    # IDXGIAdapter1::GetDesc1 is entry 10.
                    known = _call(adapter, 10, ctypes.byref(description)) == 0
                    if known and not description.flags & _DXGI_ADAPTER_FLAG_SOFTWARE:
                        found.append(_adapter(description))
                finally:
                    _call(adapter, 2)
        finally:
            _call(factory, 2)


def _adapter(description: _AdapterDescription) -> Adapter:
    text = bytes(description.description).decode("utf-16-le", "replace").split("\0", 1)[0]
    luid = (description.luid.high & 0xFFFFFFFF) << 32 | description.luid.low
    return Adapter(luid, text, int(description.dedicated_video))


def _call(pointer: ctypes.c_void_p, entry: int, *args: Any) -> int:
    """Call a COM method by its place in the object's table (2 is Release)."""
    table = ctypes.cast(pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    make: Any = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)
    prototype = make(ctypes.c_int32, ctypes.c_void_p, *(_argument_type(arg) for arg in args))
    return int(prototype(table[entry])(pointer, *args))


def _argument_type(argument: Any) -> Any:
    return ctypes.c_uint32 if isinstance(argument, ctypes.c_uint32) else ctypes.c_void_p


def _check(status: int) -> None:
    if status != 0:
        raise OSError(f"PDH answered 0x{status & 0xFFFFFFFF:08X}")
