"""The measurements of this computer, in one SQLite file of the data folder.

In: :class:`Measurement` values. Out: the same, newest last. Each is on disk when
:meth:`MeasurementStore.add` returns. A store of a newer program is opened for reading only,
and ``problem`` says so. Any thread; the file may be shared by processes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moelauncher.core.damaged_file import move_aside
from moelauncher.core.errors import LauncherError
from moelauncher.core.paths import made
from moelauncher.core.speed.conditions import Conditions
from moelauncher.core.speed.measurement import CHAT, Machine, Measurement, Setting
from moelauncher.core.translate import tr

#: Raise it with every change of the tables, and add the step that leads there below.
SCHEMA_VERSION = 2

_WAIT_S = 5.0


def _first_tables(database: sqlite3.Connection) -> None:
    database.execute(
        "CREATE TABLE measurement ("
        " id INTEGER PRIMARY KEY,"
        " model TEXT NOT NULL, model_name TEXT NOT NULL,"
        " machine_name TEXT NOT NULL, build TEXT NOT NULL, driver TEXT NOT NULL,"
        " setting TEXT NOT NULL,"  # JSON
        " time_s REAL NOT NULL, n_prompt INTEGER NOT NULL, n_generated INTEGER NOT NULL,"
        " depth INTEGER NOT NULL, prompt_tok_s REAL, tok_s REAL,"
        " vram_bytes INTEGER, ram_bytes INTEGER,"
        " notes TEXT NOT NULL,"  # JSON
        " disturbance TEXT NOT NULL, source TEXT NOT NULL)"
    )
    database.execute("CREATE INDEX of_model ON measurement (model, machine_name)")
    database.execute(
        "CREATE TABLE choice ("
        " model TEXT NOT NULL, machine_name TEXT NOT NULL, setting TEXT NOT NULL,"
        " time_s REAL NOT NULL, PRIMARY KEY (model, machine_name))"
    )


def _what_really_ran(database: sqlite3.Connection) -> None:
    for column in ("threads INTEGER", "flash_attention INTEGER", "conditions TEXT"):  # JSON
        database.execute(f"ALTER TABLE measurement ADD COLUMN {column}")


#: From each version to the next.
_STEPS: Sequence[Callable[[sqlite3.Connection], None]] = (_first_tables, _what_really_ran)

#: Of each model's chat replies so many newest are kept.
_CHAT_ROWS = 200


class MeasurementStore:
    """The open file. Close it at the end."""

    def __init__(self, path: Path) -> None:
        """Raises LauncherError where the file can be neither read nor made."""
        self._path = path
        self._lock = threading.RLock()
        #: What is wrong with the store, as a sentence; "" where nothing is.
        self.problem = ""
        self._read_only = False
        self._seen_version: int | None = None
        made(path.parent)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._failed(error) from error
            self._set_aside()

    @property
    def read_only(self) -> bool:
        """Whether nothing can be added: a newer program has made the file."""
        return self._read_only

    def add(self, measurement: Measurement) -> None:
        """Store one. Raises LauncherError (disk full, newer store): what is there stays."""
        self.add_all((measurement,))

    def add_all(self, measurements: Sequence[Measurement]) -> None:
        """Store all of them, or none. Raises LauncherError as :meth:`add` does."""
        self._writable()
        rows = [_row(one) for one in measurements]
        chats = {one.model for one in measurements if one.source == CHAT}
        try:
            with self._lock, self._database:
                for row in rows:
                    names = ", ".join(row)
                    marks = ", ".join(f":{name}" for name in row)
                    self._database.execute(
                        f"INSERT INTO measurement ({names}) VALUES ({marks})", row
                    )
                for model in chats:
                    self._database.execute(
                        "DELETE FROM measurement WHERE model = :model AND source = :source"
                        " AND id NOT IN (SELECT id FROM measurement WHERE model = :model"
                        " AND source = :source ORDER BY id DESC LIMIT :most)",
                        {"model": model, "source": CHAT, "most": _CHAT_ROWS},
                    )
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def remove(self, model: str, source: str) -> int:
        """Forget all of one model from one source; how many. Raises LauncherError."""
        self._writable()
        try:
            with self._lock, self._database:
                return self._database.execute(
                    "DELETE FROM measurement WHERE model = ? AND source = ?", (model, source)
                ).rowcount
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def of_model(self, model: str, machine: str | None = None) -> list[Measurement]:
        """All of one model (fingerprint), on one machine or on all, oldest first."""
        text = "SELECT * FROM measurement WHERE model = ?"
        values: list[object] = [model]
        if machine is not None:
            text += " AND machine_name = ?"
            values.append(machine)
        return self._read(text + " ORDER BY id", values)

    def changed_elsewhere(self) -> bool:
        """Whether another program has written since this was last asked."""
        try:
            with self._lock:
                version = int(self._database.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return False
        before, self._seen_version = self._seen_version, version
        return before is not None and before != version

    def everything(self) -> list[Measurement]:
        """All of it, oldest first."""
        return self._read("SELECT * FROM measurement ORDER BY id", [])

    def remember_choice(self, model: str, machine: str, setting: Setting, time_s: float) -> None:
        """The setting that was taken for a model on a machine. Raises LauncherError."""
        self._writable()
        text = json.dumps(asdict(setting), sort_keys=True)
        try:
            with self._lock, self._database:
                self._database.execute(
                    "INSERT OR REPLACE INTO choice VALUES (?, ?, ?, ?)",
                    (model, machine, text, time_s),
                )
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def choice(self, model: str, machine: str) -> Setting | None:
        """What was taken last for this model on this machine."""
        try:
            with self._lock:
                row = self._database.execute(
                    "SELECT setting FROM choice WHERE model = ? AND machine_name = ?",
                    (model, machine),
                ).fetchone()
        except sqlite3.Error:
            return None
        return _setting(row["setting"]) if row is not None else None

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._database.close()

    # Inside

    def _open(self) -> None:
        self._database = sqlite3.connect(self._path, timeout=_WAIT_S, check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        version = int(self._database.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            self._read_only = True
            self.problem = tr(
                "The measurements were written by a newer version of MoE Launcher: they are"
                " shown, but new ones are not kept. Update the program."
            )
            return
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        if version < SCHEMA_VERSION:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                # Another process may have been faster.
                version = int(self._database.execute("PRAGMA user_version").fetchone()[0])
                for step in _STEPS[version:]:
                    step(self._database)
                self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _set_aside(self) -> None:
        """A file that is no database: keep it under another name, begin a new one."""
        self._database.close()
        try:
            aside = move_aside(self._path)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error
        self.problem = tr(
            "The measurements could not be read and were moved to {path}; new ones are kept."
        ).format(path=aside)

    def _writable(self) -> None:
        if self._read_only:
            raise LauncherError(self.problem)

    def _read(self, text: str, values: Sequence[object]) -> list[Measurement]:
        try:
            with self._lock:
                rows = self._database.execute(text, list(values)).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        return [one for row in rows if (one := _measurement(row)) is not None]

    def _failed(self, error: Exception) -> LauncherError:
        return LauncherError(
            tr("The measurements in {path} cannot be read or written: {reason}.").format(
                path=self._path, reason=error
            ),
            tr("Make room on the disk, or check the folder's permissions."),
            repr(error),
        )


def _measurement(row: Any) -> Measurement | None:
    setting = _setting(row["setting"])
    if setting is None:
        return None
    flash = _column(row, "flash_attention")
    return Measurement(
        model=row["model"],
        model_name=row["model_name"],
        setting=setting,
        machine=Machine(row["machine_name"], row["build"], row["driver"]),
        time_s=row["time_s"],
        n_prompt=row["n_prompt"],
        n_generated=row["n_generated"],
        depth=row["depth"],
        prompt_tok_s=row["prompt_tok_s"],
        tok_s=row["tok_s"],
        vram_bytes=row["vram_bytes"],
        ram_bytes=row["ram_bytes"],
        notes=tuple(json.loads(row["notes"])),
        disturbance=row["disturbance"],
        source=row["source"],
        # What a newer program's store lacks, or an older one's did not have.
        threads=_column(row, "threads"),
        flash_attention=None if flash is None else bool(flash),
        conditions=_conditions(_column(row, "conditions")),
    )


def _row(measurement: Measurement) -> dict[str, object]:
    """The columns of one measurement."""
    values = asdict(measurement)
    machine = values.pop("machine")
    conditions = values["conditions"]
    return {
        **values,
        "machine_name": machine["name"],
        "build": machine["build"],
        "driver": machine["driver"],
        "setting": json.dumps(values["setting"], sort_keys=True),
        "notes": json.dumps(list(measurement.notes)),
        "conditions": None if conditions is None else json.dumps(conditions, sort_keys=True),
    }


def _column(row: Any, name: str) -> Any:
    return row[name] if name in row.keys() else None  # noqa: SIM118 - a row is no mapping


def _conditions(text: str | None) -> Conditions | None:
    if text is None:
        return None
    known = set(Conditions.__dataclass_fields__)
    values = {name: value for name, value in json.loads(text).items() if name in known}
    for name in ("throttled", "gpu_others"):
        if isinstance(values.get(name), list):
            values[name] = tuple(
                tuple(one) if isinstance(one, list) else one for one in values[name]
            )
    try:
        return Conditions(**values)
    except TypeError:  # written by another version
        return None


def _setting(text: str) -> Setting | None:
    known = set(Setting.__dataclass_fields__)
    values = {name: value for name, value in json.loads(text).items() if name in known}
    if "tensor_split" in values:
        values["tensor_split"] = tuple(values["tensor_split"])
    try:
        return Setting(**values)
    except TypeError:  # written by another version, with something essential missing
        return None
