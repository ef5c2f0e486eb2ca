"""The child process: reads requests as JSON lines, answers each with one.

In: ``{"id", "operation", "parameters"}`` on standard input. Out: ``{"id", "result"}`` or
``{"id", "error": [message, hint, details]}`` on what was standard output; all other prints,
llama.cpp's too, go to standard error. Ends when standard input closes, also in the middle
of a request: then the parent is gone.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, NoReturn

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr

Operation = Callable[[Mapping[str, Any]], Any]


def main() -> NoReturn:
    """Serve until standard input closes, which ends the process."""
    _die_quietly()
    requests, answers = _take_pipes()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, lines), daemon=True).start()
    # Before the first request: drivers may take long to start, requests must not.
    from moelauncher.engine.child_work import OPERATIONS, warm_up

    warm_up()
    _answer(answers, {"ready": os.getpid()})
    while True:
        request = json.loads(lines.get())
        _answer(answers, {"id": request["id"]} | _run(OPERATIONS, request))


def _run(operations: Mapping[str, Operation], request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"result": operations[request["operation"]](request["parameters"])}
    except LauncherError as error:
        return {"error": [error.message, error.hint, error.details]}
    except Exception as error:  # the parent decides what an unforeseen error means
        message = tr("The helper process failed: {error}.").format(error=error)
        return {"error": [message, "", repr(error)]}


def _answer(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    stream.write(json.dumps(message).encode("ascii") + b"\n")
    stream.flush()


def _read(stream: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    for line in stream:
        lines.put(line)
    # The main thread may be deep inside llama.cpp, where nothing else ends it.
    os._exit(0)


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes to the parent, moved to numbers that no library prints to or reads from."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _die_quietly() -> None:
    """A crash here is an answer: no dialog of the system, no memory image on the disk."""
    if sys.platform == "win32":
        import ctypes

        sem_failcriticalerrors, sem_nogpfaulterrorbox = 0x0001, 0x0002
        ctypes.windll.kernel32.SetErrorMode(sem_failcriticalerrors | sem_nogpfaulterrorbox)
    else:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
