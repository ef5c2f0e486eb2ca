"""When the window opens its measurements, and that it closes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.helpers.scripted_session import ScriptedWindow
from tests.helpers.truth_models import write_truth_model


@pytest.fixture
def unseen(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    """A window whose meters have not spoken yet."""

    class Unseen(ScriptedWindow):
        def see(self, *_: object, **__: object) -> None:
            """Not yet."""

    made = Unseen(qtbot, tmp_path, write_truth_model(tmp_path, "qwen3-30b-a3b-q4_k_m"))
    yield made
    made.close()


def test_the_first_paint_does_not_wait_for_the_measurements(unseen: ScriptedWindow) -> None:
    kept = unseen.paths.measurements_file
    assert not kept.exists()
    ScriptedWindow.see(unseen)
    assert kept.exists()
    assert unseen.session.known.store is unseen.session.known.store


def test_a_window_that_never_looked_leaves_no_file(unseen: ScriptedWindow) -> None:
    unseen.session.known.close_store()
    assert unseen.session.known.store is None
    assert not unseen.paths.measurements_file.exists()
