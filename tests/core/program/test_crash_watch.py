"""Abnormal ends are noticed at the next start, orderly ones leave nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moelauncher.core.program.crash_watch import AbnormalEnd, CrashWatch
from moelauncher.core.program.mapped_files import FileFate, fate_of

RUN = """
import faulthandler, os, signal, sys
from pathlib import Path
from moelauncher.core.program.crash_watch import CrashWatch
watch = CrashWatch(Path(sys.argv[1]))
print(watch.start())
watch.note("loading", "model.gguf", "/models/model.gguf", 12, None)
end = sys.argv[2]
if end == "orderly":
    watch.finish()
elif end == "native":
    faulthandler._sigsegv()
elif end == "cut short":
    import mmap
    from moelauncher.core.program.mapped_files import as_they_stand
    model = Path(sys.argv[1]).with_name("model.gguf")
    model.write_bytes(bytes(1 << 20))
    watch.note_mapped(as_they_stand([model]))
    with model.open("rb") as file:
        weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    os.truncate(model, 0)
    print(weights[1 << 19])
elif end == "killed":
    os._exit(9)
elif end == "goes on":
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(9)
"""


def run(folder: Path, end: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), end],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def start_and_finish(folder: Path) -> AbnormalEnd | None:
    watch = CrashWatch(folder)
    try:
        return watch.start()
    finally:
        watch.finish()


def test_an_orderly_end_leaves_nothing(folder: Path) -> None:
    assert run(folder, "orderly") == "None"
    assert list(folder.iterdir()) == []
    assert start_and_finish(folder) is None


def test_a_native_crash_is_told_with_its_trace_and_what_was_going_on(folder: Path) -> None:
    run(folder, "native")
    before = start_and_finish(folder)
    assert before is not None
    assert (before.activity, before.model, before.cpu_moe) == ("loading", "model.gguf", 12)
    assert before.file is not None
    trace = before.file.read_text(encoding="utf-8")
    assert trace.startswith("Fatal") and "Segmentation fault" in trace
    assert start_and_finish(folder) is None
    assert [path.name for path in folder.iterdir()] == ["last-crash.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cuts no file that is mapped")
def test_a_mapped_file_that_was_cut_short_is_told_from_other_crashes(folder: Path) -> None:
    run(folder, "native")
    before = start_and_finish(folder)
    assert before is not None
    assert (before.page_error, before.mapped) == (False, ())

    run(folder, "cut short")
    before = start_and_finish(folder)
    assert before is not None and before.file is not None
    assert "Bus error" in before.file.read_text(encoding="utf-8")
    assert before.page_error
    assert fate_of(before.mapped) == (folder.with_name("model.gguf"), FileFate.CHANGED)


def test_the_words_of_windows_are_understood(folder: Path) -> None:
    run(folder, "killed")
    (trace,) = folder.glob("crash-*.txt")
    trace.write_text("Windows fatal exception: page error\n\nThread 0x1 ...\n", encoding="utf-8")
    before = start_and_finish(folder)
    assert before is not None and before.page_error


def test_a_process_that_was_killed_left_no_trace(folder: Path) -> None:
    run(folder, "killed")
    before = start_and_finish(folder)
    assert before is not None
    assert (before.file, before.model) == (None, "model.gguf")


def test_a_second_running_program_is_no_crash(folder: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), "goes on"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None and other.stdout.readline().strip() == b"None"
    (marker,) = folder.glob("running-*.json")
    assert start_and_finish(folder) is None
    assert marker.exists()
    other.communicate()
    assert start_and_finish(folder) is not None


@pytest.mark.parametrize("text", ["", "[]", '{"pid": "x"}', "{"])
def test_a_broken_marker_is_taken_away(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "running-1.json").write_text(text, encoding="utf-8")
    assert start_and_finish(folder) is None
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_costs_the_watch_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    watch = CrashWatch(tmp_path / "file" / "logs")
    assert watch.start() is None
    watch.note("loading")
    watch.finish()
