"""Long commands show how far they are, and a failed one shows why."""

from __future__ import annotations

import sys

import pytest
from dev_console import DevError, describe_progress, format_elapsed, run_logged


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"", ""),
        (b"\n  [1/464] c++ a.cpp\n  [232/464] c++ b.cpp\n", ", 50 %, about 5 min left"),
        (b"[9/10] c++ b.cpp\n", ", 90 %, about a minute left"),
        (b"[1/464] c++ a.cpp\n", ", 0 %"),
        (b"Collecting numpy\nDownloading numpy (18 MB)\n\n", ": Downloading numpy (18 MB)"),
        ("Größe".encode(), ": Gr??e"),
        (b"[3/0] nothing to divide by", ": [3/0] nothing to divide by"),
    ],
)
def test_progress_comes_from_the_commands_own_output(output, shown):
    assert describe_progress(output, 300.0) == shown


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59, "59 s"), (200, "3 min 20 s")])
def test_elapsed_time_is_read_at_a_glance(seconds, text):
    assert format_elapsed(seconds) == text


def test_failed_command_shows_the_end_of_its_output(tmp_path):
    code = "import sys; print('cmake: no compiler'); sys.exit(3)"
    with pytest.raises(DevError) as caught:
        run_logged([sys.executable, "-c", code], log=tmp_path / "logs" / "a.txt", what="compiling")
    assert "compiling failed (exit code 3)" in str(caught.value)
    assert "cmake: no compiler" in str(caught.value)


def test_command_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(DevError, match="no-such-program"):
        run_logged(["no-such-program"], log=tmp_path / "a.txt", what="trying")
