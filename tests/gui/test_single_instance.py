"""A second start hands its arguments over; nonsense on the socket harms nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from moelauncher import __version__
from moelauncher.gui.single_instance import FirstInstance, LaterStart, hand_over, socket_name

#: Another process, since the window's own event loop must answer while this one waits.
_SECOND_START = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from moelauncher.gui.single_instance import LaterStart, hand_over
app = QCoreApplication([])
start = LaterStart(tuple(Path(text) for text in sys.argv[2:]))
sys.exit(0 if hand_over(sys.argv[1], start, print) else 3)
"""
#: Ends with its connection made and nothing said.
_ENDS_TOO_EARLY = """
import sys
from PySide6.QtCore import QCoreApplication
from moelauncher.gui.single_instance import LaterStart, hand_over
app = QCoreApplication([])
hand_over(sys.argv[1], LaterStart(), lambda descriptor: sys.exit(7))
"""


@pytest.fixture
def name(tmp_path: Path) -> str:
    return socket_name(tmp_path)


@pytest.fixture
def first(qtbot: QtBot, name: str) -> Iterator[FirstInstance]:
    instance = FirstInstance(name)
    assert instance.listening
    yield instance
    instance.close()
    instance.deleteLater()


def test_the_second_start_hands_over(qtbot: QtBot, first: FirstInstance, name: str) -> None:
    asked: list[LaterStart] = []
    first.asked.connect(asked.append)
    odd = ["größe 日本.gguf", "two\nlines.gguf"] if sys.platform != "win32" else ["größe.gguf"]
    process = subprocess.Popen(
        [sys.executable, "-c", _SECOND_START, name, *odd], stdout=subprocess.PIPE
    )
    qtbot.waitUntil(lambda: process.poll() is not None)
    assert process.returncode == 0
    assert asked == [LaterStart(tuple(Path.cwd() / text for text in odd))]
    said, _ = process.communicate()
    assert int(said) > 2  # the connection's descriptor


def test_its_connection_is_shown_before_anything_is_said(
    qtbot: QtBot, first: FirstInstance, name: str
) -> None:
    asked: list[LaterStart] = []
    first.asked.connect(asked.append)
    process = subprocess.Popen([sys.executable, "-c", _ENDS_TOO_EARLY, name])
    qtbot.waitUntil(lambda: process.poll() is not None)
    assert process.returncode == 7
    # Answered after that one: nothing of it is still on its way.
    socket = say(name, LaterStart(demo=True).to_line())
    qtbot.waitUntil(lambda: bool(asked))
    socket.close()
    assert asked == [LaterStart(demo=True)]


def test_a_start_goes_over_the_socket_and_comes_back() -> None:
    start = LaterStart((Path("/a b.gguf").absolute(),), True, True, "9.9.9", "token-1")
    assert LaterStart.from_line(start.to_line()) == start
    assert LaterStart.from_line(LaterStart().to_line()) == LaterStart()


def say(name: str, line: bytes) -> QLocalSocket:
    socket = QLocalSocket()
    socket.connectToServer(name)
    assert socket.waitForConnected(5000)
    socket.write(line)
    socket.flush()
    return socket


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ("", __version__),  # of a version that did not say
        (', "version": "9.9.9", "more": [1]', "9.9.9"),
        (', "version": 7, "activation_token": "a\\u0000b"', __version__),
    ],
)
def test_copies_of_other_versions_hand_over_too(
    qtbot: QtBot, first: FirstInstance, name: str, more: str, version: str
) -> None:
    asked: list[LaterStart] = []
    first.asked.connect(asked.append)
    socket = say(name, f'{{"models": ["/a.gguf"], "demo": false{more}}}\n'.encode())
    qtbot.waitUntil(lambda: bool(asked))
    assert asked == [LaterStart((Path("/a.gguf"),), version=version)]
    assert socket.bytesAvailable() or socket.waitForReadyRead(5000)
    assert socket.readAll().data() == b"taken\n"


def test_without_a_window_there_is_nothing_to_hand_over_to(qapp: object, name: str) -> None:
    assert not hand_over(name, LaterStart())


def test_folders_apart_have_windows_apart(tmp_path: Path) -> None:
    assert socket_name(tmp_path / "a") != socket_name(tmp_path / "b")
    assert socket_name(tmp_path / "a") == socket_name(Path(str(tmp_path)) / "a")


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b"{}\n",
        b'{"models": 5, "demo": false}\n',
        b"\xff\xfe\n",
        b"[" * 9999 + b"\n",
    ],
)
def test_nonsense_is_dropped_and_the_window_goes_on(
    qtbot: QtBot, first: FirstInstance, name: str, line: bytes
) -> None:
    asked: list[LaterStart] = []
    first.asked.connect(asked.append)
    socket = say(name, line)
    qtbot.waitUntil(lambda: socket.state() == QLocalSocket.LocalSocketState.UnconnectedState)
    assert asked == []
    assert first.listening


def test_what_a_crash_left_behind_is_replaced(qtbot: QtBot, name: str) -> None:
    crash = (
        "import os, sys; from PySide6.QtCore import QCoreApplication;"
        "from moelauncher.gui.single_instance import FirstInstance;"
        "app = QCoreApplication([]); one = FirstInstance(sys.argv[1]);"
        "os._exit(0 if one.listening else 1)"
    )
    assert subprocess.run([sys.executable, "-c", crash, name], timeout=240).returncode == 0
    instance = FirstInstance(name)
    assert instance.listening
    instance.close()
    instance.deleteLater()
