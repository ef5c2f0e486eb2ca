"""The log file."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import NativeLog
from moelauncher.core.log_file import LogSetup, log_native


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[LogSetup]:
    log = LogSetup(tmp_path / "logs" / "moelauncher.log")
    yield log
    log.close()


def text_of(tmp_path: Path) -> str:
    return (tmp_path / "logs" / "moelauncher.log").read_text(encoding="utf-8")


def test_lines_go_to_the_file(setup: LogSetup, tmp_path: Path) -> None:
    logging.getLogger("moelauncher.test").info("größer als 日本")
    log_native(NativeLog(0, "warning", "llama_context: n_ctx is small\n"))
    lines = text_of(tmp_path).splitlines()
    assert len(lines) == 2
    assert "größer als 日本" in lines[0]
    assert lines[1].endswith("WARNING llama.cpp: llama_context: n_ctx is small")


def test_native_lines_cannot_move_the_terminal(setup: LogSetup, tmp_path: Path) -> None:
    log_native(NativeLog(0, "info", "name = \x1b[2Jevil\nforged line"))
    (line,) = text_of(tmp_path).splitlines()
    assert line.endswith("name = \\x1b[2Jevil\\nforged line")


def test_percent_signs_are_text(setup: LogSetup, tmp_path: Path) -> None:
    log_native(NativeLog(0, "info", "100 %s done"))
    assert text_of(tmp_path).endswith("100 %s done\n")


def test_no_place_for_a_file_is_a_problem_and_soils_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    code = f"""
import logging, pathlib
from moelauncher.core.log_file import LogSetup
log = LogSetup(pathlib.Path({str(tmp_path / "logs" / "x.log")!r}))
logging.getLogger("x").warning("not for the terminal")
log.close()
print(log.problem)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=True,
    )
    assert "cannot be made" in done.stdout
    assert done.stderr == ""


def test_close_undoes_it(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = list(root.handlers), root.level
    LogSetup(tmp_path / "x.log").close()
    assert (list(root.handlers), root.level) == before


def test_a_file_that_cannot_be_moved_away_grows_on(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("x" * (2 << 20), encoding="utf-8")
    (tmp_path / "x.log.1").mkdir()
    (tmp_path / "x.log.2").write_text("older", encoding="utf-8")
    setup = LogSetup(tmp_path / "x.log")
    for number in range(4):
        logging.getLogger("moelauncher.test").warning("line %s", number)
    setup.close()
    lines = (tmp_path / "x.log").read_text(encoding="utf-8").splitlines()
    assert [line[-6:] for line in lines[-4:]] == [f"line {number}" for number in range(4)]
    assert (tmp_path / "x.log.3").read_text(encoding="utf-8") == "older"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that only Linux has")
def test_a_full_disk_does_not_stop_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").symlink_to("/dev/full")
    setup = LogSetup(tmp_path / "log.txt")
    logging.getLogger("moelauncher.test").warning("does not fit")
    setup.close()
    assert capsys.readouterr().err == ""
