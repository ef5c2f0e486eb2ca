"""Physical cores as each system counts them."""

from __future__ import annotations

from moelauncher.core.cpu_cores import logical_cores
from moelauncher.engine.cpu_threads import count_core_records, physical_cores


def record(kind: int, size: int) -> bytes:
    return kind.to_bytes(4, "little") + size.to_bytes(4, "little") + bytes(size - 8)


def test_this_machine_has_cores() -> None:
    assert 1 <= physical_cores() <= logical_cores()


def test_windows_records_of_cores_are_counted() -> None:
    assert count_core_records(record(0, 48) + record(3, 64) + record(0, 48)) == 2


def test_windows_records_that_make_no_sense() -> None:
    assert count_core_records(b"") is None
    assert count_core_records(record(0, 48)[:4] + bytes(12)) is None
