"""What past loads took of each device, kept so that the next forecast can be safer.

In: comparisons and failures of loads. Out: ``loads.jsonl`` in the data folder, one JSON
object a line, one line a device and load, each with its schema version. Lines that cannot
be read (cut short, from a newer version) are passed over and kept. One thread.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.errors import LauncherError

_log = logging.getLogger(__name__)

SCHEMA = 1
#: Older lines are dropped: drivers change, and the file is read at every start.
KEPT_LINES = 500
_TRIM_AT = KEPT_LINES * 2

LOADED, OUT_OF_MEMORY, SPILLED = "loaded", "out of memory", "spilled"


@dataclass(frozen=True)
class LoadRecord:
    """One device in one load. Bytes unknown are None."""

    time_s: float  # seconds since 1970
    device: str  # see device_key
    outcome: str  # LOADED, OUT_OF_MEMORY or SPILLED
    model: str
    planned_bytes: int  # the driver's share included
    driver_bytes: int  # of these
    leave_free_bytes: int  # the margin then
    spare_bytes: int | None  # the forecast's, above the margin
    buffer_bytes: int | None = None  # what llama.cpp said it allocated
    measured_bytes: int | None = None  # what the meters saw
    had_context: bool = False
    spilled_bytes: int | None = None


def device_key(name: str, description: str) -> str:
    """What names the same GPU under the same backend in every run: "CUDA0 RTX 4070"."""
    return f"{name} {description}".strip()


class LoadRecords:
    """All records of one file, oldest first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[str] = []
        self._records: list[LoadRecord] = []
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return
        self._lines = [line for line in lines if line.strip()]
        self._records = [record for line in self._lines if (record := _read(line)) is not None]

    @property
    def records(self) -> tuple[LoadRecord, ...]:
        """Everything that is known, oldest first."""
        return tuple(self._records)

    def add(self, records: Iterable[LoadRecord]) -> bool:
        """Remember ``records``; False (and a line in the log) where they cannot be stored.

        They count in this run all the same.
        """
        new = list(records)
        if not new:
            return True
        self._records += new
        added = [json.dumps({"schema": SCHEMA} | asdict(record)) for record in new]
        self._lines += added
        try:
            if len(self._lines) > _TRIM_AT:
                self._lines = self._lines[-KEPT_LINES:]
                write_text_atomically(self._path, "\n".join(self._lines) + "\n")
            else:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8", newline="\n") as file:
                    file.write("\n".join(added) + "\n")
        except (OSError, LauncherError) as error:
            _log.warning("loads are not remembered: %s", error)
            return False
        return True


def _read(line: str) -> LoadRecord | None:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        return None
    known = {field.name for field in fields(LoadRecord)}
    try:
        record = LoadRecord(**{name: value for name, value in values.items() if name in known})
    except TypeError:
        return None
    return record if _sound(record) else None


def _sound(record: LoadRecord) -> bool:
    whole = (record.planned_bytes, record.driver_bytes, record.leave_free_bytes)
    maybe = (
        record.spare_bytes,
        record.buffer_bytes,
        record.measured_bytes,
        record.spilled_bytes,
    )
    return (
        all(type(value) is int for value in whole)
        and all(value is None or type(value) is int for value in maybe)
        and isinstance(record.time_s, int | float)
        and all(isinstance(text, str) for text in (record.device, record.outcome, record.model))
        and isinstance(record.had_context, bool)
    )
