"""The process ends while its windows are open: Qt takes apart what is left, and no Python of ours
may stand in its way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.window_driver import sample_basedir

ROOT = Path(__file__).resolve().parents[2]
#: What the platform without a screen says of itself.
_OFFSCREEN = b"This plugin does not support"


@pytest.mark.parametrize("how", ["quit", "exit", "fall"])
def test_it_ends_in_order_under_open_windows(tmp_path: Path, session_cache: Path, how: str) -> None:
    base = sample_basedir(tmp_path / "base", session_cache)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.helpers.window_left_open", str(base), how],
        cwd=ROOT,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        timeout=600,
        check=False,
    )
    errors = [line for line in ended.stderr.splitlines() if not line.startswith(_OFFSCREEN)]
    assert (ended.returncode, errors) == (0, [])
    assert ended.stdout.split() == [], "a dialog was not opened"
