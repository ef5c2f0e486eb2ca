"""One window for each set of folders: a second start hands its arguments over and ends.

``hand_over`` asks whether a window is there already; ``FirstInstance`` is that window's ear. The
name of the socket holds the user and the base folder, so portable copies do not meet. Copies of
different versions do: what the other does not know in a message it passes over. GUI thread.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from moelauncher import __version__

_log = logging.getLogger(__name__)

#: A window that is busy answers late; one that hangs must not hold up a new start for long.
_PATIENCE_MS = 2000
#: More than any command line holds.
_MOST_BYTES = 1 << 20
_ANSWER = b"taken\n"


def socket_name(config: Path) -> str:
    """The name under which the window of this configuration folder listens."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = ""
    text = f"{user}|{config.expanduser().absolute()}"
    return "moelauncher-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def hand_over(name: str, models: Sequence[Path], *, demo: bool = False) -> bool:
    """Give the arguments to a running window; False where there is none that answers.

    Blocks for at most some seconds. Needs a QCoreApplication.
    """
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_PATIENCE_MS):
        return False
    # Relative names mean something here only.
    paths = [str(path.expanduser().absolute()) for path in models]
    document = {"models": paths, "demo": demo, "version": __version__}
    message = json.dumps(document, ensure_ascii=True)
    socket.write(message.encode("ascii") + b"\n")
    socket.flush()
    answer = b""
    while len(answer) < len(_ANSWER) and socket.waitForReadyRead(_PATIENCE_MS):
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return answer == _ANSWER


class FirstInstance(QObject):
    """Listens for later starts. Call :meth:`close` in the end.

    Signals:
        asked(list, bool): paths that another start was given, and whether it wanted the sample.
            An empty list: only the window is wanted.
        other_version(str): that start was of another version of this program.
    """

    asked = Signal(list, bool)
    other_version = Signal(str)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        # Nobody else on this machine may talk to the window.
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)
        if not self._server.listen(name):
            # What a crash left behind; hand_over found that nobody answers there.
            QLocalServer.removeServer(name)
            if not self._server.listen(name):
                _log.warning("no single instance: %s", self._server.errorString())

    @property
    def listening(self) -> bool:
        """Whether later starts find this window."""
        return self._server.isListening()

    def close(self) -> None:
        """Listen no longer."""
        self._server.close()

    def _connected(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setReadBufferSize(_MOST_BYTES + 1)
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)
            if socket.bytesAvailable():
                self._read(socket)

    def _read(self, socket: QLocalSocket) -> None:
        if socket.bytesAvailable() > _MOST_BYTES:
            socket.abort()
            return
        if not socket.canReadLine():
            return
        line = bytes(socket.readLine().data())
        try:
            message = json.loads(line)
            paths = [Path(text) for text in message["models"] if "\0" not in text]
            demo = message.get("demo") is True
            version = message.get("version", __version__)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            socket.abort()
            return
        socket.write(_ANSWER)
        socket.flush()
        self.asked.emit(paths, demo)
        if isinstance(version, str) and version != __version__:
            self.other_version.emit(version)
