"""What the window does not import before it is first needed: each would delay its first paint."""

from __future__ import annotations

import subprocess
import sys

LATER = (
    "huggingface_hub",
    "jinja2",
    "llama_cpp",
    "moelauncher.core.library.model_card",
    "moelauncher.gui.library.metadata_table",
    "moelauncher.gui.library.model_card",
    "moelauncher.gui.speed.setting_plot",
    "moelauncher.gui.speed.speed_plot",
    "moelauncher.hub",
    "multiprocessing",
    "numpy",
    "pygments",
    "pynvml",
    "pyqtgraph",
)

_LOADED = "import sys; from moelauncher import app; print(*sys.modules)"


def test_the_window_imports_little_before_its_first_paint() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=240
    )
    loaded = set(done.stdout.split())
    assert "moelauncher.gui.main_window" in loaded
    assert [name for name in LATER if name in loaded] == []
