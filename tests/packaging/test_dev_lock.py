"""Two set-ups of one clone follow each other, and a killed one holds nobody up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dev_lock
import pytest

PACKAGING = Path(dev_lock.__file__).parent

HOLD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dev_lock import alone
with alone(Path(sys.argv[2]), "the other one"):
    print("inside", flush=True)
    sys.stdin.readline()
print("outside", flush=True)
"""


@pytest.fixture
def holder(tmp_path):
    """Starts processes that take the lock and keep it until they are given a line."""
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(PACKAGING), str(tmp_path / "a.lock")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_second_one_waits_and_says_for_what(holder):
    first, second = holder(), None
    assert first.stdout.readline() == "inside\n"
    second = holder()
    assert second.stdout.readline().strip() == "waiting for the other one"
    first.communicate("\n")
    assert second.stdout.readline() == "inside\n"


def test_lock_of_a_killed_process_is_free(holder):
    first = holder()
    assert first.stdout.readline() == "inside\n"
    first.kill()
    first.wait()
    assert holder().stdout.readline() == "inside\n"


def test_lock_is_free_after_an_error(tmp_path):
    lock = tmp_path / "folder" / "a.lock"
    with pytest.raises(ValueError, match="inside"), dev_lock.alone(lock, "nobody"):
        raise ValueError("inside")
    with dev_lock.alone(lock, "nobody"):
        assert lock.exists()
