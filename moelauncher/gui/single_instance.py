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
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class LaterStart:
    """What a start was given while a window was open. Nothing: only the window is wanted."""

    models: tuple[Path, ...] = ()
    demo: bool = False
    #: The window is to be closed.
    quits: bool = False
    version: str = __version__
    #: Wayland's leave to come to the front, from the program that started that one.
    activation_token: str = ""

    def to_line(self) -> bytes:
        """As it goes over the socket."""
        document = {
            # Relative names mean something in that process only.
            "models": [str(path.expanduser().absolute()) for path in self.models],
            "demo": self.demo,
            "quit": self.quits,
            "version": self.version,
            "activation_token": self.activation_token,
        }
        return json.dumps(document, ensure_ascii=True).encode("ascii") + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> LaterStart | None:
        """What :meth:`to_line` of any version made; None for anything else."""
        try:
            message = json.loads(line)
            models = tuple(Path(text) for text in message["models"] if "\0" not in text)
            version = message.get("version")
            token = message.get("activation_token")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return None
        return cls(
            models,
            demo=message.get("demo") is True,
            quits=message.get("quit") is True,
            version=version if isinstance(version, str) else __version__,
            activation_token=token if isinstance(token, str) and "\0" not in token else "",
        )


def socket_name(config: Path) -> str:
    """The name under which the window of this configuration folder listens."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = ""
    text = f"{user}|{config.expanduser().absolute()}"
    return "moelauncher-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def hand_over(
    name: str, start: LaterStart, connected: Callable[[int], object] = lambda _: None
) -> bool:
    """Give ``start`` to a running window; False where there is none that answers.

    ``connected`` is called before that window hears of it, with the connection's descriptor (on
    Windows the handle of a named pipe). Blocks for at most some seconds. Needs a
    QCoreApplication.
    """
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_PATIENCE_MS):
        return False
    connected(int(socket.socketDescriptor()))
    socket.write(start.to_line())
    socket.flush()
    answer = b""
    while len(answer) < len(_ANSWER) and socket.waitForReadyRead(_PATIENCE_MS):
        answer += bytes(socket.readAll().data())
    socket.disconnectFromServer()
    return answer == _ANSWER


class FirstInstance(QObject):
    """Listens for later starts. Call :meth:`close` in the end.

    Signals:
        asked(LaterStart): there was another start.
    """

    asked = Signal(object)

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
                return
        _log.info("listening for later starts")

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
        start = LaterStart.from_line(bytes(socket.readLine().data()))
        if start is None:
            socket.abort()
            return
        socket.write(_ANSWER)
        socket.flush()
        self.asked.emit(start)
