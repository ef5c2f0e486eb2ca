"""At 200 % nothing is cut off, too narrow for its words, or under something else.

Qt reads the scale once a process, so the window is built in one of its own: see
``tests/helpers/scaled_window.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.program_starts import ROOT


def test_everything_can_be_read_at_200_percent(tmp_path: Path) -> None:
    scaled = {"QT_SCALE_FACTOR": "2", "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.scaled_window", str(tmp_path)],
        env=os.environ | scaled,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found["scale"] == 2.0
    assert len(found["faults"]) == 6
    assert {name: faults for name, faults in found["faults"].items() if faults} == {}
