"""The door to llama.cpp: loads the native library once and routes its log.

In: nothing. Out: :class:`Native`, the low-level bindings and the ggml libraries beside
them. ``llama_cpp`` is imported at the first :func:`load_native`, never when this module
is imported (it costs 0.1 s and hundreds of megabytes of address space). Any thread.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moelauncher.core.errors import LauncherError
from moelauncher.core.translate import tr
from moelauncher.engine.backend_modules import NO_MODULES, LoadedModules, load_modules

#: Called with (level, line); level is "debug", "info", "warning" or "error".
LogSink = Callable[[str, str], None]

# ggml_log_level of ggml.h; 5 continues the line before.
_LEVELS = {1: "debug", 2: "info", 3: "warning", 4: "error"}
_CONTINUE = 5


@dataclass(frozen=True)
class Native:
    """The loaded library. ``lib`` is the module ``llama_cpp.llama_cpp``."""

    lib: Any
    ggml: Any  # ctypes library with the device registry
    ggml_base: Any  # ctypes library with the buffer types
    version: str  # of llama-cpp-python
    library_folder: Path
    #: ``llama_sampler_sample(chain, context, index)`` without giving the interpreter's lock away.
    #: A token costs one hand-over less, which a busy window would stretch. Only where the
    #: logits are there already: on a GPU call ``llama_synchronize`` first.
    sample_at_once: Any
    #: ``llama_get_logits_ith(context, index)`` as an address, under the same conditions.
    logits_at_once: Any
    #: What had to be worked around to load it, as sentences for the log.
    notes: tuple[str, ...] = ()
    #: What became of the loadable parts, where the build has such.
    modules: LoadedModules = NO_MODULES


_lock = threading.Lock()
_loaded: Native | None = None


def load_native(announce: Callable[[str], None] = lambda _: None) -> Native:
    """The native library, imported at the first call. Any thread.

    ``announce`` gets the name of each backend module before it is touched. Raises LauncherError
    when llama-cpp-python is missing or its library does not load.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _import_native(announce)
        return _loaded


def _import_native(announce: Callable[[str], None]) -> Native:
    notes = _drop_stale_toolkit_paths(os.environ) if sys.platform == "win32" else ()
    try:
        package = importlib.import_module("llama_cpp")
        lib: Any = importlib.import_module("llama_cpp.llama_cpp")
    except ImportError as error:
        raise LauncherError(
            tr("llama-cpp-python is not installed, so no model can run."),
            tr('Install it into this Python with "pip install llama-cpp-python".'),
            str(error),
        ) from error
    except (OSError, RuntimeError) as error:
        raise LauncherError(
            tr("The native library of llama-cpp-python could not be loaded."),
            tr("Install a build of llama-cpp-python that fits this machine and its GPU driver."),
            str(error),
        ) from error
    folder = Path(lib._base_path)
    ggml = _open_sibling(folder, "ggml", lib._lib)
    ggml_base = _open_sibling(folder, "ggml-base", ggml)
    _declare(ggml, ggml_base)
    lib.llama_log_set(_log_callback(lib), ctypes.c_void_p(0))
    atexit.register(_close_log, lib)
    # Before anything else: llama.cpp itself would look in the executable's folder and the
    # current one, and say nothing of a module that does not load.
    modules = load_modules(ggml, folder, announce=announce)
    if ggml.ggml_backend_dev_count() == 0:
        raise LauncherError(
            tr("The native library of llama-cpp-python has nothing to compute with."),
            tr("Install MoE Launcher again; a part of it is missing."),
            "\n".join(modules.notes),
        )
    lib.llama_backend_init()
    return Native(
        lib,
        ggml,
        ggml_base,
        str(package.__version__),
        folder,
        *_at_once(lib),
        (*notes, *modules.notes),
        modules,
    )


def _at_once(lib: Any) -> tuple[Any, Any]:
    """What is called at each token, without giving the interpreter's lock away."""
    held = ctypes.PyDLL(lib._lib._name, handle=lib._lib._handle)
    sample, logits = held.llama_sampler_sample, held.llama_get_logits_ith
    sample.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32]
    sample.restype = ctypes.c_int32
    logits.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    logits.restype = ctypes.c_void_p
    return sample, logits


def _drop_stale_toolkit_paths(environ: MutableMapping[str, str]) -> tuple[str, ...]:
    """Take CUDA_PATH and HIP_PATH out of ``environ`` where their folders are gone.

    llama_cpp adds ``bin`` and ``lib`` of them to the DLL search and fails as a whole when
    one does not exist, as after an uninstalled toolkit. What is left of them is added here.
    """
    notes = []
    for name in ("CUDA_PATH", "HIP_PATH"):
        root = environ.get(name)
        if root is None:
            continue
        folders = [Path(root, "bin"), Path(root, "lib")]
        present = [folder for folder in folders if folder.is_dir()]
        if len(present) == len(folders):
            continue
        del environ[name]
        for folder in present:
            if sys.platform == "win32":
                os.add_dll_directory(str(folder))
        notes.append(
            tr("{name} names a folder that is not complete ({folder}); it was left out.").format(
                name=name, folder=root
            )
        )
    return tuple(notes)


def _open_sibling(folder: Path, base_name: str, fallback: Any) -> Any:
    """The ggml library that libllama loaded; ``fallback`` where all is linked into one file.

    A wheel holds each library under three names, as three files. Opening another of them than
    the loaded one would start a second registry of devices, which libllama knows nothing of.
    """
    if sys.platform == "win32":
        for name in (f"{base_name}.dll", f"lib{base_name}.dll"):
            if (folder / name).is_file():
                return ctypes.CDLL(str(folder / name))
        return fallback
    loaded_only = os.RTLD_NOW | os.RTLD_NOLOAD
    for pattern in (f"lib{base_name}.so*", f"lib{base_name}.*dylib"):
        for file in sorted(folder.glob(pattern)):
            with contextlib.suppress(OSError):
                return ctypes.CDLL(str(file), mode=loaded_only)
    return fallback


def _declare(ggml: Any, ggml_base: Any) -> None:
    """Result and argument types: without them ctypes cuts pointers to 32 bits."""
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    registry_functions: dict[str, tuple[Any, list[Any]]] = {
        "ggml_backend_dev_count": (size, []),
        "ggml_backend_dev_get": (pointer, [size]),
        "ggml_backend_register": (None, [pointer]),
    }
    device_functions: dict[str, tuple[Any, list[Any]]] = {
        "ggml_backend_dev_get_props": (None, [pointer, pointer]),
        "ggml_backend_dev_backend_reg": (pointer, [pointer]),
        "ggml_backend_reg_name": (ctypes.c_char_p, [pointer]),
        "ggml_backend_cpu_buffer_type": (pointer, []),
    }
    for library, functions in ((ggml, registry_functions), (ggml_base, device_functions)):
        for name, (result, arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments


class _LogRouter:
    """Joins pieces to lines and hands them to the sink of the thread that logs.

    llama.cpp knows one callback a process; several engines may live in one. Lines of
    native helper threads go to the sink that was opened last.
    """

    def __init__(self) -> None:
        self._sinks: dict[int, LogSink] = {}
        self._partial: dict[int, tuple[str, bytes]] = {}

    def open(self, sink: LogSink) -> LogSink | None:
        thread = threading.get_ident()
        before = self._sinks.pop(thread, None)
        self._sinks[thread] = sink
        return before

    def close(self, before: LogSink | None) -> None:
        thread = threading.get_ident()
        self._flush(thread)
        self._sinks.pop(thread, None)
        if before is not None:
            self._sinks[thread] = before

    def receive(self, level: int, text: bytes) -> None:
        thread = threading.get_ident()
        name, pending = self._partial.pop(thread, ("info", b""))
        if level != _CONTINUE:
            if pending:
                self._deliver(thread, name, pending)
                pending = b""
            name = _LEVELS.get(level, "info")
        pending += text
        *lines, rest = pending.split(b"\n")
        for line in lines:
            self._deliver(thread, name, line)
        if rest or level == _CONTINUE or not lines:
            self._partial[thread] = (name, rest)

    def _flush(self, thread: int) -> None:
        name, pending = self._partial.pop(thread, ("info", b""))
        if pending:
            self._deliver(thread, name, pending)

    def _deliver(self, thread: int, level: str, line: bytes) -> None:
        sink = self._sinks.get(thread)
        if sink is None:
            sinks = list(self._sinks.values())
            sink = sinks[-1] if sinks else None
        if sink is not None:
            sink(level, line.decode("utf-8", errors="replace").rstrip("\r"))


_router = _LogRouter()
_callback: Any = None


def _log_callback(lib: Any) -> Any:
    global _callback

    def receive(level: int, text: bytes | None, _user_data: object) -> None:
        if text:
            _router.receive(level, text)

    # Held for the life of the process: llama.cpp keeps the bare address.
    _callback = lib.llama_log_callback(receive)
    return _callback


def _close_log(lib: Any) -> None:
    """Drop all lines from now on: GPU drivers still log when Python is gone already.

    A null callback would print them on stderr, so the C library's own ``abs`` takes them:
    it looks at the first argument, the level, and does nothing.
    """
    callback = ctypes.cast(c_library().abs, lib.llama_log_callback)
    lib.llama_log_set(callback, ctypes.c_void_p(0))


def c_library() -> Any:
    """The C library of this process, for callbacks that must not enter Python."""
    return ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)


@contextmanager
def log_to(sink: LogSink) -> Iterator[None]:
    """Send llama.cpp's log lines of this thread to ``sink`` inside the ``with`` block.

    Without an open sink lines are dropped: they never reach stderr. ``sink`` runs inside
    the native call and must neither block nor raise.
    """
    before = _router.open(sink)
    try:
        yield
    finally:
        _router.close(before)
