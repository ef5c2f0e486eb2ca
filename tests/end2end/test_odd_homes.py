"""The whole program with homes, clocks and installations that are not as they should be.

Each is a process of its own, as a person starts it: it must open its window, say nothing on
standard error, and end in order.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG_NAME = "Größe mit 日本 und Leerzeichen " + "x" * 150

#: Runs before the program: a clock that stands in another year.
OTHER_CLOCK = """
import time
_real = time.time
_shift = {year} * 31_556_952.0 - _real()
time.time = lambda: _real() + _shift
time.time_ns = lambda: int(time.time() * 1e9)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="homes are set by HOME elsewhere")


def run(
    *arguments: str, before: tuple[str, ...] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    environment = kept | {
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "QT_QPA_PLATFORM": "offscreen",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [*before, sys.executable, "-m", "moelauncher", *arguments],
        env=environment | environ,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


def assert_opens(picture: Path, *arguments: str, **environ: str) -> None:
    done = run("--screenshot", str(picture), *arguments, **environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_home_with_a_long_name_of_all_alphabets(tmp_path: Path) -> None:
    home = tmp_path / LONG_NAME
    home.mkdir()
    assert len(home.name.encode()) > 180
    assert_opens(tmp_path / "window.png", HOME=str(home))
    assert (home / ".local" / "share" / "moelauncher" / "window.json").is_file()
    report = run("doctor", "--json", HOME=str(home))
    assert report.stderr == ""
    assert LONG_NAME not in report.stdout and json.loads(report.stdout)["data"].startswith("~")


def test_no_home_at_all(tmp_path: Path) -> None:
    """Not even the superuser can make a folder there."""
    nowhere = "/proc/nobody"
    assert_opens(tmp_path / "window.png", HOME=nowhere)
    for command in ("list", "doctor"):
        done = run(command, "--json", HOME=nowhere)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("year", [1, 80])
def test_clock_in_another_age(tmp_path: Path, year: int) -> None:
    """1971, as with an empty battery; then the clock is right again, and the files are older."""
    wrong = tmp_path / "clock"
    wrong.mkdir()
    text = OTHER_CLOCK.format(year=year)
    (wrong / "sitecustomize.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join((str(wrong), str(ROOT)))
    base = ["--basedir", str(tmp_path / "base")]
    assert_opens(tmp_path / "first.png", "--demo", *base, HOME=str(tmp_path), PYTHONPATH=path)
    assert_opens(tmp_path / "second.png", "--demo", *base, HOME=str(tmp_path))
    log = (tmp_path / "base" / "logs" / "moelauncher.log").read_text(encoding="utf-8")
    assert "Traceback" not in log


def test_toolkit_that_was_uninstalled(tmp_path: Path) -> None:
    done = run(
        "doctor", "--json", HOME=str(tmp_path), CUDA_PATH=str(tmp_path / "gone"), HIP_PATH=""
    )
    assert (done.returncode, done.stderr) == (0, "")
    verdicts = {v["subject"]: v for v in json.loads(done.stdout)["verdicts"]}
    assert verdicts["CUDA_PATH"]["level"] == "warning"
    assert "HIP_PATH" not in verdicts


#: Enters a world of mounts of its own, puts a full disk at a folder, and runs the rest.
FULL_DISK = """
set -e
mount -t tmpfs -o size=200k tmpfs "$1"
dd if=/dev/zero of="$1/fill" bs=1k count=200 2>/dev/null || true
shift
exec "$@"
"""


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"),
    reason="only root may mount a full disk",
)
def test_full_disk(tmp_path: Path) -> None:
    disk, picture = tmp_path / "disk", tmp_path / "window.png"
    disk.mkdir()
    before = ("unshare", "--mount", "sh", "-c", FULL_DISK, "full", str(disk))
    base = ("--basedir", str(disk / "base"))
    for arguments in (("--screenshot", str(picture), *base), ("doctor", "--json", *base)):
        done = run(*arguments, before=before, HOME=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(disk.iterdir()) == []  # the mount is gone with its process
