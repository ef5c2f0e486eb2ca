"""The window on a screen that is scaled, in a process of its own: Qt reads the scale once.

Run as ``QT_SCALE_FACTOR=2 python -m tests.helpers.scaled_window FOLDER [PICTURES]``. Prints, as
JSON, the scale and what is wrong in each state; with PICTURES also keeps what it looked at.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from moelauncher.core.chats.chat_library import ChatLibrary
from moelauncher.core.chats.conversation import ShownTurn, Turn
from moelauncher.core.memory.place_model import place
from moelauncher.core.program.settings import Settings
from moelauncher.core.session_state import Selection, SessionState, controls
from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.chats.chat_settings_dialog import ChatSettingsDialog
from moelauncher.gui.library.model_list_pane import ModelListPane
from moelauncher.gui.main_window import MainWindow
from moelauncher.gui.program.settings_dialog import SettingsDialog
from moelauncher.gui.speed.tune_dialog import TuneDialog
from moelauncher.gui.theme import apply_theme
from tests.helpers.doctor_values import BUILD, CPU, GPU
from tests.helpers.layout_faults import layout_faults
from tests.helpers.memory_values import MIB, device, forecast, snapshot
from tests.helpers.planned_models import gpu, made_facts

#: As many points as a screen of 2560 x 1440 has at 200 %.
SIZE = (1280, 720)
REPLY = """The **router** picks 8 of 256.

```python
x = 1
```

| layers | tok/s |
|-|-|
| 24 | 38.4 |
"""


def fill(window: MainWindow) -> None:
    """A model that does not fit two GPUs, a chat, and something to say in every line."""
    facts = replace(
        made_facts([(20 * MIB, 480 * MIB)] * 40, ctx_train=262144), name="Qwen3.6-35B-A3B"
    )
    window.heading.set_facts(facts)
    gpus = [device(f"CUDA{n}", recurrent_bytes=MIB * 60) for n in range(2)]
    gpus[0] = replace(gpus[0], expert_bytes=20 * gpus[0].expert_bytes)
    window.memory.set_snapshot(snapshot())
    window.memory.set_forecast(
        forecast(*gpus, text="68.4 GiB too much on CUDA0: move 24 more expert layers to the CPU.")
    )
    pane = window.placement
    sentence = "Expert weights of 4 of 40 layers stay in RAM. Attention and KV cache do not."
    pane.set_slider(40, 4, sentence, True, fits=[stop > 28 for stop in range(41)])
    pane.set_layers(facts, place(facts, [gpu(12)], cpu_moe=4))
    able = controls(SessionState.READY, Selection.LOADABLE, same_model=True, settings_differ=True)
    pane.set_controls(able, "Apply (3 s, chat goes on)")
    pane.set_context_hint("Largest context that fits: 128k", 131072)
    turns = (Turn("user", "Why is it faster to keep experts in RAM?"), Turn("assistant", REPLY))
    window.chat.show_turns([ShownTurn(n, turn) for n, turn in enumerate(turns, 1)])
    for second in range(20):
        window.speed.add_rate(100.0 + second, 38.0)
    window.speed.set_summary(38.4, 37.9)
    window.speed.set_traffic("2.3 GiB VRAM + 334 MiB RAM a token", "", "≈ 51.9", guessed=True)
    window.speed.set_speeds((), 40, (), 4, [60.0 - stop for stop in range(41)], guessed=True)
    window.status.set_state("generating", "38.4 tok/s")
    window.status.set_context("context 1.2k of 32k")
    window.status.set_gpu("GPU 62 °C, 71 %")
    window.status.set_build("Vulkan · zen4 · 7 threads")
    window.status.set_warnings(2)


def states(folder: Path) -> Iterator[tuple[str, QWidget]]:
    """Every state to look at, shown, each until the next one is asked for."""
    window = MainWindow(ModelListPane(), ChatPane())
    window.resize(*SIZE)
    window.show()
    window.speed.build_plot()
    for name in ("empty", "filled", "more"):
        if name == "filled":
            fill(window)
        window.placement.more_button.setChecked(name == "more")
        yield name, window
    settings = Settings.load(folder / "settings.toml")
    library = ChatLibrary(folder / "library.json")
    for dialog in (
        SettingsDialog(settings, [GPU, CPU], BUILD, window),
        ChatSettingsDialog("You are terse.", {}, settings, library, {}, window),
        TuneDialog(window),
    ):
        dialog.show()
        yield type(dialog).__name__, dialog
        dialog.close()
    window.close()


def main(folder: str, pictures: str = "") -> None:
    app = QApplication([])
    apply_theme(app, "dark")
    faults: dict[str, list[str]] = {}
    ratio = 0.0
    for name, widget in states(Path(folder)):
        QTest.qWait(50)  # layouts settle in several rounds of events
        ratio = widget.devicePixelRatioF()
        faults[name] = layout_faults(widget)
        if pictures:
            widget.grab().save(str(Path(pictures) / f"{name}.png"))
    sys.stdout.write(json.dumps({"scale": ratio, "faults": faults}))


if __name__ == "__main__":
    main(*sys.argv[1:])
