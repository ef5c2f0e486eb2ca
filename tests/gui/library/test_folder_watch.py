"""folder_watch.py: no change between the look at a folder and its watch is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from moelauncher.gui.library.folder_watch import FolderWatch

_LOOKED_AT_NS = 1_700_000_000_000_000_000


@pytest.fixture
def watch(qtbot: QtBot) -> Iterator[FolderWatch]:
    made = FolderWatch()
    yield made
    made.close()


def test_what_changed_since_the_look_is_told(
    qtbot: QtBot, watch: FolderWatch, tmp_path: Path
) -> None:
    os.utime(tmp_path, ns=(_LOOKED_AT_NS + 1, _LOOKED_AT_NS + 1))
    with qtbot.waitSignal(watch.changed):
        watch.watch([str(tmp_path)], _LOOKED_AT_NS)


def test_what_changed_before_the_look_is_not(
    qtbot: QtBot, watch: FolderWatch, tmp_path: Path
) -> None:
    told: list[str] = []
    watch.changed.connect(lambda: told.append("changed"))
    still, changed = tmp_path / "still", tmp_path / "changed"
    for folder, at_ns in ((still, _LOOKED_AT_NS - 1), (changed, _LOOKED_AT_NS)):
        folder.mkdir()
        os.utime(folder, ns=(at_ns, at_ns))
    watch.watch([str(still)], _LOOKED_AT_NS)
    # What is asked for later is answered later: by then the first folder would have told.
    with qtbot.waitSignal(watch.changed):
        watch.watch([str(still), str(changed)], _LOOKED_AT_NS)
    assert told == ["changed"]
