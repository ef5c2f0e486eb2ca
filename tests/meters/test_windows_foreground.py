"""Who serves a named pipe, and the leave to come to the front that it gets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from moelauncher.meters.windows_foreground import let_server_come_to_front, server_of

#: Another process opens the pipe, and tells whose it is and whether that one may come to the front.
_ASKS = """
import sys
import _winapi
from moelauncher.meters.windows_foreground import let_server_come_to_front, server_of
pipe = _winapi.CreateFile(
    sys.argv[1], _winapi.GENERIC_READ, 0, 0, _winapi.OPEN_EXISTING, 0, 0
)
print(server_of(pipe), let_server_come_to_front(pipe))
"""


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_the_process_that_made_the_pipe_may_come_to_front() -> None:
    import _winapi

    name = rf"\\.\pipe\moelauncher-test-{os.getpid()}"
    pipe = _winapi.CreateNamedPipe(name, _winapi.PIPE_ACCESS_DUPLEX, 0, 1, 512, 512, 0, 0)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _ASKS, name], capture_output=True, text=True, timeout=240
        )
    finally:
        _winapi.CloseHandle(pipe)
    assert answer.stdout.split() == [str(os.getpid()), "True"], answer.stderr


@pytest.mark.parametrize("no_pipe", [0, -1, 0x7FFF_FFF0])
def test_what_is_no_pipe_has_no_server(no_pipe: int) -> None:
    assert server_of(no_pipe) is None
    assert not let_server_come_to_front(no_pipe)
