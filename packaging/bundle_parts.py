"""What goes into the one-folder bundle, and what of Qt and Python stays out.

Standard library only; read by the specification and by the checks of a built bundle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

#: Python packages that something imports on the way, and no part of the program needs.
UNUSED_PACKAGES = (
    *("tkinter", "unittest", "doctest", "pydoc_data", "lib2to3", "idlelib", "turtle"),
    *("setuptools", "pip", "wheel", "pkg_resources", "_distutils_hack"),
    *("pytest", "_pytest", "pytestqt", "hypothesis", "mypy", "ruff", "gguf", "grimp", "click"),
    *("matplotlib", "scipy", "pandas", "cupy", "numba", "h5py", "OpenGL", "IPython"),
    *("numpy.f2py", "numpy.distutils", "numpy.testing"),
    *("pyqtgraph.examples", "pyqtgraph.opengl", "pyqtgraph.jupyter", "pyqtgraph.console"),
    # Only the server and the fetching of upstream's high-level class use these.
    *("llama_cpp.server", "fastapi", "uvicorn", "pydantic"),
    *("PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtSql", "PySide6.QtTest"),
    *("PySide6.QtPrintSupport", "PySide6.QtXml"),
    *("PySide6.QtConcurrent", "PySide6.QtDesigner", "PySide6.QtHelp", "PySide6.QtUiTools"),
)

#: Files of Qt that its packages bring and this program never opens.
_UNUSED_FILES = re.compile(
    r"""
    /(lib)?Qt6?(Qml|Quick|Pdf|VirtualKeyboard|Sql|Test|Designer|Help|WebSockets
        |QmlModels|QmlMeta|QmlWorkerScript|Labs|3D|Multimedia|ShaderTools|Concurrent)\w*\.(so|dll)
    | /(plugins|PySide6)/(qmltooling|sqldrivers|tls|networkinformation|virtualkeyboard
        |generic|designer|egldeviceintegrations|assetimporters|webview)/
    | /plugins/platforminputcontexts/\w*virtualkeyboard
    # The portal asks the desktop for its look and dialogs; this one would bring all of GTK.
    | /plugins/platformthemes/\w*qgtk3
    | /plugins/wayland-graphics-integration-client/
    | /(lib)?Qt6?(EglFS|EglFs)\w*\.so
    | /pyqtgraph/icons/peegee/
    # The loader belongs to the graphics drivers; llama.cpp's part without it says so.
    | /libvulkan\.so
    | /plugins/platforms/\w*(eglfs|linuxfb|minimalegl|vkkhrdisplay|vnc|direct2d|minimal)\b
    | /plugins/imageformats/\w*(qpdf|qtiff|qtga|qwbmp|qwebp|qicns)\b
    | /translations/
    | opengl32sw\.dll | d3dcompiler_\d+\.dll
    | /(ios|mac|emscripten|nacl)/
    | \.(pyi|lib|a|cmake|prl|h|hpp)$
    """,
    re.VERBOSE,
)

#: PyInstaller leaves these to the system's graphics drivers; a bare system gets them as spares.
SPARE_LIBRARIES = (
    *("libxcb.so.1", "libGLdispatch.so.0", "libGLX.so.0", "libGL.so.1", "libEGL.so.1"),
)


#: Windows' own library, which Wine lacks. Tests under Wine put one that does nothing in its place.
_STAND_IN = re.compile(r"(.*[/\\])?icu(uc|in|dt|io|tu)?\d*\.dll", re.IGNORECASE)


def is_unused(name: str) -> bool:
    """Whether the file at ``name`` inside the bundle can stay out."""
    return _UNUSED_FILES.search("/" + name.replace("\\", "/")) is not None or is_stand_in(name)


def is_stand_in(name: str) -> bool:
    """Whether ``name`` is a library of Windows that must never come from a bundle."""
    return _STAND_IN.fullmatch(name) is not None


#: Neither Qt's own libraries nor Python's: those that the system's packages bring.
_LOOSE_LIBRARY = re.compile(r"[^/]+\.so(\.[\w.]+)?")


def without_orphans(
    entries: Iterable[tuple[str, str, str]],
    needed_by: Callable[[str], Iterable[str]],
    always: Iterable[str] = (),
) -> list[tuple[str, str, str]]:
    """The list less libraries that nothing in it needs any more, after :func:`without_unused`.

    ``needed_by`` gives the file names that a library or program asks for; ``always`` names what
    stays in any case.
    """
    kept = list(entries)
    asked = {source: {Path(name).name for name in needed_by(source)} for _, source, _ in kept}
    while True:
        wanted = {name for _, source, _ in kept for name in asked[source]} | set(always)
        remaining = [
            entry
            for entry in kept
            if not _LOOSE_LIBRARY.fullmatch(entry[0])
            or Path(entry[0]).name in wanted
            or entry[0].startswith("libpython")
            or entry[2] not in ("BINARY", "SYMLINK")
        ]
        if len(remaining) == len(kept):
            return kept
        kept = remaining


def without_unused(
    entries: Iterable[tuple[str, str, str]],
) -> list[tuple[str, str, str]]:
    """PyInstaller's list (name inside, source, kind) less what :func:`is_unused`."""
    return [entry for entry in entries if not is_unused(entry[0])]
