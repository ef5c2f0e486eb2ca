"""The flag that ends a running request, readable by llama.cpp without Python.

llama.cpp asks its abort callback after every node of the graph, thousands of times a
token. A Python function there would fetch the interpreter lock each time and slow decoding
down, so the callback is the C library's own ``atoi`` and the flag is the text it reads:
"0" goes on, "1" aborts.
"""

from __future__ import annotations

import ctypes
from typing import Any

from moelauncher.engine.native import c_library


class StopFlag:
    """Set by any thread, looked at by the engine thread and by llama.cpp's threads."""

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(b"0")
        self.raised = False  # the same, for Python's own loops

    def set(self, raised: bool) -> None:
        """Raise or lower the flag. Any thread."""
        self.raised = raised
        self._text[0] = b"1" if raised else b"0"

    def install(self, lib: Any, context: Any) -> None:
        """Let ``context`` abort a computation when the flag is raised.

        The flag must live as long as the context: llama.cpp keeps the bare addresses.
        """
        callback = ctypes.cast(c_library().atoi, lib.ggml_abort_callback)
        lib.llama_set_abort_callback(context, callback, ctypes.cast(self._text, ctypes.c_void_p))
