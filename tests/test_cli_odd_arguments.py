"""Arguments that cannot be meant, and streams that are not there: one sentence, never a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command_line import moelauncher
from tests.helpers.gguf_files import write_tiny_model

ROOT = Path(__file__).parents[1]
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small expert model."""
    return write_tiny_model(tmp_path_factory.mktemp("odd") / "moe.gguf", "moe")


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "MODEL", "--gpu", "A=8GiB", "--gpu", "A=8GiB"),
        ("bench", "MODEL", "--pp", "0", "--tg", "0"),
        ("chat", "MODEL", "-p", "x", "--threads", "513"),
        ("chat", "MODEL", "-p", "x", "--threads", "100000"),
        ("plan", "MODEL", "--basedir", ""),
        ("plan", ""),
        ("chat", "", "-p", "x"),
        ("list", "MODEL", ""),
        ("measurements", "MODEL", "--import", ""),
        ("--screenshot", "", "MODEL"),
        ("",),
        ("plan", "MODEL", "--basedir", "MODEL"),
        ("--demo", "--basedir", "MODEL"),
    ],
)
def test_wrong_arguments_are_status_2(words: tuple[str, ...], model: Path, tmp_path: Path) -> None:
    given = [str(model) if word == "MODEL" else word for word in words]
    if "--basedir" not in given:
        given += ["--basedir", str(tmp_path)]
    ran = moelauncher(*given)
    assert ran.status == 2, ran.err
    assert ran.out == ""
    assert ran.err.strip()
    assert "Traceback" not in ran.err


def test_an_option_that_is_not_there_is_named_and_not_its_value(tmp_path: Path) -> None:
    ran = moelauncher("plan", "--demo", "--threads", "4", "--basedir", tmp_path)
    assert ran.status == 2
    assert ran.err.splitlines()[0] == "moelauncher plan: unrecognized arguments: --threads"


def test_a_prompt_may_begin_like_an_option(model: Path, tmp_path: Path) -> None:
    words = ("chat", model, "-p", "--why is it so?", "--max-tokens", "1", "--ctx", "64")
    assert moelauncher(*words, "--basedir", tmp_path).status == 0


def test_a_number_out_of_range_names_the_range(model: Path, tmp_path: Path) -> None:
    ran = moelauncher("chat", model, "-p", "x", "--seed", "99999999999", "--basedir", tmp_path)
    assert ran.status == 2
    assert "from 0 to 2147483648" in ran.err


def test_bench_says_which_placements_are_the_same(model: Path, tmp_path: Path) -> None:
    ran = moelauncher(
        *("bench", model, "--cpu-moe", "all,4", "--pp", "4", "--tg", "0", "--repeat", "1"),
        *("--ctx", "256", "--json", "--basedir", tmp_path),
    )
    assert ran.status == 0, ran.err
    assert len(ran.out.splitlines()) == 1
    assert "4 is the same placement as all, so it is measured once." in ran.err


@pytest.mark.skipif(not FULL.exists(), reason="a device that only Linux has")
def test_a_full_disk_is_a_sentence(model: Path, tmp_path: Path) -> None:
    with FULL.open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "moelauncher", "plan", model, "--basedir", tmp_path],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=240,
        )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("The output cannot be written: ")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream with a POSIX shell")
@pytest.mark.parametrize("words", ["plan /nowhere.gguf", "chat --demo"])
def test_without_a_stderr_nothing_of_it_reaches_stdout(words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m moelauncher {words} --basedir "$1" 2>&-', sys.executable, tmp_path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=240,
    )
    assert done.returncode in (1, 2)
    assert done.stdout == ""
