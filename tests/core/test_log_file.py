"""The log file and the newest lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.engine_protocol import NativeLog
from moelauncher.core.log_file import LogSetup, log_native


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[LogSetup]:
    log = LogSetup(tmp_path / "logs" / "moelauncher.log", n_lines=5)
    yield log
    log.close()


def text_of(tmp_path: Path) -> str:
    return (tmp_path / "logs" / "moelauncher.log").read_text(encoding="utf-8")


def test_lines_go_to_the_file_and_the_tail(setup: LogSetup, tmp_path: Path) -> None:
    logging.getLogger("moelauncher.test").info("größer als 日本")
    log_native(NativeLog(0, "warning", "llama_context: n_ctx is small\n"))
    lines, n_seen = setup.tail.lines_after(0)
    assert n_seen == 2
    assert "größer als 日本" in lines[0]
    assert lines[1].endswith("WARNING llama.cpp: llama_context: n_ctx is small")
    assert "größer als 日本" in text_of(tmp_path)


def test_the_tail_is_bounded_and_asked_in_steps(setup: LogSetup) -> None:
    for i in range(8):
        logging.getLogger("x").info("line %d", i)
    lines, n_seen = setup.tail.lines_after(0)
    assert [line[-6:] for line in lines] == [f"line {i}" for i in range(3, 8)]
    assert setup.tail.lines_after(n_seen) == ([], 8)
    logging.getLogger("x").info("line 8")
    assert [line[-6:] for line in setup.tail.lines_after(n_seen)[0]] == ["line 8"]


def test_native_lines_cannot_move_the_terminal(setup: LogSetup) -> None:
    log_native(NativeLog(0, "info", "name = \x1b[2Jevil\nforged line"))
    (line,), _ = setup.tail.lines_after(0)
    assert line.endswith("name = \\x1b[2Jevil\\nforged line")


def test_percent_signs_are_text(setup: LogSetup) -> None:
    log_native(NativeLog(0, "info", "100 %s done"))
    assert setup.tail.lines_after(0)[0][0].endswith("100 %s done")


def test_no_place_for_a_file_leaves_the_tail(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    log = LogSetup(tmp_path / "logs" / "x.log")
    try:
        assert "cannot be made" in log.problem
        logging.getLogger("x").info("still here")
        assert log.tail.lines_after(0)[1] == 1
    finally:
        log.close()


def test_close_undoes_it(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = list(root.handlers), root.level
    LogSetup(tmp_path / "x.log").close()
    assert (list(root.handlers), root.level) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that only Linux has")
def test_a_full_disk_does_not_stop_the_end(tmp_path: Path) -> None:
    (tmp_path / "log.txt").symlink_to("/dev/full")
    setup = LogSetup(tmp_path / "log.txt")
    logging.getLogger("moelauncher.test").warning("does not fit")
    setup.close()
    assert setup.tail.lines_after(0)[0][0].endswith("does not fit")
