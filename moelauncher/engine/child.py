"""One warm child process for what may crash: llama.cpp aborts on bad files.

In: named requests with JSON parameters. Out: JSON results, or LauncherError with the
reason, also where the child crashed or took too long; it is then started anew at the next
request. One request at a time; any thread may ask, the others wait. The child ends by
itself when this process does, since its standard input then closes.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from moelauncher.core.errors import Cancelled, HelperCrashed, LauncherError
from moelauncher.core.helper_python import helper_python
from moelauncher.core.translate import tr
from moelauncher.engine.broken_backends import BrokenBackends, suspect_of

#: How long the child may take over one request before it is killed. On a busy machine, or with the
#: file on a slow disk, ten seconds are not many for what takes one.
REQUEST_TIMEOUT_S = 30.0
#: How long it may take to start: the first import after an installation can be slow.
START_TIMEOUT_S = 60.0

_POLL_S = 0.02  # how soon a cancel is noticed
#: How long its last words may take to arrive. Something that its drivers started may outlive it and
#: hold its pipes open: on Windows those end with the last process that inherited them.
_LAST_WORDS_S = 2.0
_STDERR_LINES = 200

# Last words on standard error, most telling first: "FILE:LINE: GGML_ASSERT(...) failed", an
# error line of the log, a C++ exception, a Python one.
_ABORT = re.compile(r"([\w-]+\.\w+:\d+): (?P<reason>.+)$")
_LAST_WORDS = (
    re.compile(r"^error: (?P<reason>.+)$"),
    re.compile(r"what\(\):\s*(?P<reason>.+)$"),
    re.compile(r"^(?P<reason>\w+Error\b.*)$"),
)


def child_command() -> list[str]:
    """The command that runs ``child_main``. A frozen program runs itself with ``--child``."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "--child"]
    return [helper_python(), "-m", "moelauncher.engine.child_main"]


def _child_environment() -> dict[str, str]:
    environment = dict(os.environ)
    # Without it an abort first starts a debugger to print where it happened.
    environment["GGML_NO_BACKTRACE"] = "1"
    if getattr(sys, "frozen", False):
        # PyInstaller's loader would take it for a part of this process and prepare nothing.
        environment["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
    else:
        package_root = str(Path(__file__).resolve().parents[2])
        parts = [package_root, environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
    return environment


class ChildUnavailableError(LauncherError):
    """The child gave no answer in time or did not start: nothing is known of the file."""


class _ChildGoneError(Exception):
    """The child ended without an answer."""


class _Process:
    """A running child and the two threads that read its pipes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        creation_flags = 0
        if sys.platform == "win32":
            creation_flags = subprocess.CREATE_NO_WINDOW
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            creationflags=creation_flags,
        )
        self.pid = self._popen.pid
        self.stderr_tail: deque[str] = deque(maxlen=_STDERR_LINES)
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._threads = (
            threading.Thread(target=self._read_stdout, name="child-stdout", daemon=True),
            threading.Thread(target=self._read_stderr, name="child-stderr", daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Raises OSError when the child is gone."""
        stdin = _pipe(self._popen.stdin)
        stdin.write(json.dumps(message).encode("ascii") + b"\n")
        stdin.flush()

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next message. Raises queue.Empty after ``timeout_s``, _ChildGoneError at the end."""
        message = self._messages.get(timeout=timeout_s)
        if message is None:
            self._messages.put(None)
            raise _ChildGoneError
        return message

    @property
    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    def forget_stderr(self) -> None:
        self.stderr_tail.clear()

    def end(self) -> int:
        """Kill it where it still runs; returns the exit status once all is gone."""
        with contextlib.suppress(OSError):
            self._popen.kill()
        status = self._popen.wait()
        with contextlib.suppress(OSError):  # unsent bytes of a request have no reader any more
            _pipe(self._popen.stdin).close()
        for thread in self._threads:
            thread.join(_LAST_WORDS_S)
        return status

    def wait(self) -> int:
        """The exit status of a child that ends by itself, its last words read."""
        status = self._popen.wait()
        self._threads[1].join(_LAST_WORDS_S)
        return status

    def _read_stdout(self) -> None:
        with _pipe(self._popen.stdout) as pipe:
            for line in pipe:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        self._messages.put(message)
        self._messages.put(None)

    def _read_stderr(self) -> None:
        with _pipe(self._popen.stderr) as pipe:
            for line in pipe:
                self.stderr_tail.append(line.decode("utf-8", errors="replace").rstrip())


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # all three are pipes
    return stream


class Child:
    """The child process, started at the first request. Close it at the end."""

    def __init__(
        self,
        *,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        start_timeout_s: float = START_TIMEOUT_S,
        broken: BrokenBackends | None = None,
    ) -> None:
        """``environment`` is added to this process's own, for the child only.

        A GPU module that ends the child while it starts is noted in ``broken``, and the child
        is started again without it.
        """
        self._command = list(command) if command is not None else child_command()
        self._environment = dict(environment or {})
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._broken = broken if broken is not None else BrokenBackends()
        self._turn = threading.Lock()
        self._process: _Process | None = None
        self._n_sent = 0
        self._used_s = 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The running child's process id; None when there is none now."""
        process = self._process
        return process.pid if process else None

    def request(
        self,
        operation: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        timeout_s: float | None = None,
        counts: bool = True,
    ) -> Any:
        """Run ``operation`` in the child and return its result. Blocks; any thread.

        ``counts`` false: the child is no less idle for it, see :meth:`sleep`.

        Raises LauncherError with the child's reason, or what is known of a crash or of the
        time running out; Cancelled when ``cancelled()`` becomes true (the child is killed).
        """
        while not self._turn.acquire(timeout=_POLL_S):
            if cancelled():
                raise Cancelled
        try:
            return self._request(operation, parameters or {}, cancelled, timeout_s)
        finally:
            if counts:
                self._used_s = time.monotonic()
            self._turn.release()

    def sleep(self, idle_s: float = 0.0) -> None:
        """End the child where it has had nothing to do for ``idle_s``: its drivers give their
        memory back. The next request starts another. Returns at once; any thread.
        """
        if not self._turn.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._used_s >= idle_s:
                self._drop()
        finally:
            self._turn.release()

    def close(self) -> None:
        """End the child, waiting for a running request to be dropped. Safe to call twice."""
        self._closed = True
        with self._turn:
            self._drop()

    def _request(
        self,
        operation: str,
        parameters: Mapping[str, Any],
        cancelled: Callable[[], bool],
        timeout_s: float | None,
    ) -> Any:
        process = self._running(cancelled)
        self._n_sent += 1
        process.forget_stderr()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            process.send({"id": self._n_sent, "operation": operation, "parameters": parameters})
            answer = self._answer(process, limit_s, cancelled)
        except (_ChildGoneError, OSError):
            raise self._crash() from None
        except queue.Empty:
            self._drop()
            raise ChildUnavailableError(
                tr("llama.cpp did not answer within {seconds:g} s.").format(seconds=limit_s),
                tr("The file may be damaged, or the machine very busy; try again."),
                "\n".join(process.stderr_tail),
            ) from None
        if "error" in answer:
            raise LauncherError(*answer["error"])
        return answer.get("result")

    def _running(self, cancelled: Callable[[], bool]) -> _Process:
        if self._closed:
            raise Cancelled
        if self._process is not None and self._process.has_ended:  # while it had nothing to do
            self._drop()
        if self._process is not None:
            return self._process
        while True:
            try:
                self._process = self._start(cancelled)
            except ChildUnavailableError as error:
                suspect = suspect_of(error.details.splitlines())
                if suspect is None or not self._broken.add(suspect):
                    raise
            else:
                return self._process

    def _start(self, cancelled: Callable[[], bool]) -> _Process:
        try:
            self._process = process = _Process(
                self._command, _child_environment() | self._environment
            )
        except OSError as error:
            raise ChildUnavailableError(
                tr("The helper process that checks models could not be started."),
                tr("Reinstall MoE Launcher, or allow it in your security software."),
                str(error),
            ) from error
        try:
            self._answer(process, self._start_timeout_s, cancelled)
        except _ChildGoneError:
            reason = _last_words(*self._end())
            raise ChildUnavailableError(
                tr("llama.cpp crashed while it started: {reason}").format(reason=reason[0]),
                tr("Update the graphics driver, or install another build of llama-cpp-python."),
                reason[1],
            ) from None
        except queue.Empty:
            details = "\n".join(process.stderr_tail)
            self._drop()
            raise ChildUnavailableError(
                tr("The helper process that checks models did not start within {s:g} s.").format(
                    s=self._start_timeout_s
                ),
                tr("The machine may be very busy; try again."),
                details,
            ) from None
        return process

    def _answer(
        self, process: _Process, limit_s: float, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        deadline = time.monotonic() + limit_s
        while True:
            try:
                return process.receive(min(_POLL_S, max(deadline - time.monotonic(), 0.0)))
            except queue.Empty:
                if cancelled() or self._closed:
                    self._drop()
                    raise Cancelled from None
                if time.monotonic() >= deadline:
                    raise

    def _crash(self) -> LauncherError:
        reason, details = _last_words(*self._end())
        return HelperCrashed(
            tr("llama.cpp refused this file: {reason}").format(reason=reason),
            tr("The file may be damaged, or need a newer llama.cpp."),
            details,
            reason=reason,
        )

    def _end(self) -> tuple[list[str], int]:
        """Last lines and exit status of a child that ended by itself."""
        process = self._process
        assert process is not None
        status = process.wait()
        self._drop()
        return list(process.stderr_tail), status

    def _drop(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _last_words(lines: Sequence[str], status: int) -> tuple[str, str]:
    """Why a process died (its assertion, else its last error line, else how it ended), and
    all its last lines.
    """
    return refusal_reason(_reason(lines) or _ending(status)), "\n".join(lines)


def _reason(lines: Sequence[str]) -> str:
    for line in reversed(lines):
        if match := _ABORT.search(line):
            return f"{match['reason']} ({match[1]})"
    for pattern in _LAST_WORDS:
        for line in reversed(lines):
            if match := pattern.search(line):
                return match["reason"]
    return ""


def refusal_reason(text: str) -> str:
    """A reason in llama.cpp's words, ended like a sentence: a hint follows it."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _ending(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return tr("it crashed ({signal})").format(signal=signal.Signals(-status).name)
    return tr("it crashed (exit status {status})").format(status=f"{status & 0xFFFFFFFF:#x}")
