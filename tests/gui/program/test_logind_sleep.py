"""Sleep as logind tells it: over a bus of the test's own, with a logind that it plays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux" or not shutil.which("dbus-daemon"):
    pytest.skip("dbus-daemon is Linux's, and not installed everywhere", allow_module_level=True)

from PySide6.QtDBus import (
    QDBusConnection,
    QDBusMessage,
    QDBusUnixFileDescriptor,
    QDBusVirtualObject,
)
from pytestqt.qtbot import QtBot

from moelauncher.gui.program.logind_sleep import INTERFACE, PATH, SERVICE, LogindSleep

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir={folder}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


def done_by_the_bus(connection: QDBusConnection) -> None:
    """Wait until the bus has done all that was said to it: what comes later changes none of it."""
    question = QDBusMessage.createMethodCall(
        "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId"
    )
    answer = connection.call(question)
    assert answer.type() == QDBusMessage.MessageType.ReplyMessage, answer.errorMessage()


class Logind(QDBusVirtualObject):
    """Hands out locks, and knows whether they are held."""

    def __init__(self, bus: QDBusConnection) -> None:
        super().__init__()
        self._bus = bus
        self.asked: list[list[object]] = []
        self.locks: list[int] = []

    def introspect(self, path: str) -> str:
        return ""

    def handleMessage(self, message: QDBusMessage, connection: QDBusConnection) -> bool:
        if message.member() != "Inhibit":
            return False
        self.asked.append(message.arguments())
        ours, theirs = os.pipe()
        self.locks.append(ours)
        reply = message.createReply()
        reply.setArguments([QDBusUnixFileDescriptor(theirs)])
        os.close(theirs)
        return connection.send(reply)

    def is_held(self, index: int = -1) -> bool:
        """Whether the other end of a lock's pipe is open: reading does not end yet."""
        os.set_blocking(self.locks[index], False)
        try:
            return os.read(self.locks[index], 1) != b""
        except BlockingIOError:
            return True

    def tell(self, before: bool) -> None:
        signal = QDBusMessage.createSignal(PATH, INTERFACE, "PrepareForSleep")
        signal.setArguments([before])
        assert self._bus.send(signal)
        done_by_the_bus(self._bus)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "bus.conf"
    file.write_text(CONFIGURATION.format(folder=tmp_path), encoding="utf-8")
    command = ["dbus-daemon", f"--config-file={file}", "--nofork", "--print-address"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate()


@pytest.fixture
def logind(qtbot: QtBot, address: str) -> Iterator[Logind]:
    bus = QDBusConnection.connectToBus(address, "test-logind")
    assert bus.isConnected() and bus.registerService(SERVICE)
    logind = Logind(bus)
    assert bus.registerVirtualObject(
        PATH, logind, QDBusConnection.VirtualObjectRegisterOption.SingleNode
    )
    yield logind
    bus.unregisterObject(PATH)
    for lock in logind.locks:
        os.close(lock)
    QDBusConnection.disconnectFromBus("test-logind")


@pytest.fixture
def source(logind: Logind, address: str) -> Iterator[LogindSleep]:
    source = LogindSleep(connection=QDBusConnection.connectToBus(address, "test-program"))
    yield source
    source.close()
    QDBusConnection.disconnectFromBus("test-program")


def test_system_waits_until_the_program_is_ready(
    qtbot: QtBot, logind: Logind, source: LogindSleep
) -> None:
    told: list[str] = []
    assert source.start(lambda: told.append("sleep"), lambda: told.append("wake"))
    qtbot.waitUntil(lambda: source.holds_lock)
    assert [str(part) for part in logind.asked[0][:2]] == ["sleep", "MoE Launcher"]
    assert logind.asked[0][3] == "delay"
    logind.tell(True)
    qtbot.waitUntil(lambda: told == ["sleep"])
    assert logind.is_held()
    source.ready()
    qtbot.waitUntil(lambda: not logind.is_held())
    logind.tell(False)
    qtbot.waitUntil(lambda: told == ["sleep", "wake"])
    # For the next sleep there is a new one.
    qtbot.waitUntil(lambda: source.holds_lock)
    assert len(logind.asked) == 2 and logind.is_held()


def test_closed_source_holds_nothing_and_hears_nothing(
    qtbot: QtBot, logind: Logind, source: LogindSleep
) -> None:
    told: list[str] = []
    source.start(lambda: told.append("sleep"), lambda: told.append("wake"))
    qtbot.waitUntil(lambda: source.holds_lock)
    source.close()
    source.close()
    qtbot.waitUntil(lambda: not logind.is_held())
    program = QDBusConnection("test-program")
    done_by_the_bus(program)  # it is told that nobody listens any more
    logind.tell(True)
    source.start(lambda: told.append("again"), lambda: None)
    done_by_the_bus(program)
    logind.tell(True)
    qtbot.waitUntil(lambda: "again" in told)
    assert told == ["again"]


def test_without_a_bus_nothing_is_told(qtbot: QtBot) -> None:
    nowhere = QDBusConnection.connectToBus("unix:path=/nonexistent/bus", "test-nowhere")
    source = LogindSleep(connection=nowhere)
    assert not source.start(lambda: None, lambda: None)
    source.ready()
    source.close()
    QDBusConnection.disconnectFromBus("test-nowhere")
