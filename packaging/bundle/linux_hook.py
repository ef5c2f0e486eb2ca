"""Runs in the packaged program on Linux before anything else.

A machine with a desktop has OpenGL's dispatch libraries, a font and fontconfig's settings of
its own, and those are used. A bare one has not: then the copies that the bundle carries are.
"""

import ctypes
import os
import sys
from pathlib import Path

_SPARE = Path(str(vars(sys)["_MEIPASS"])) / "spare"
# In this order: each needs the one before.
_LIBRARIES = ("libxcb.so.1", "libGLdispatch.so.0", "libGLX.so.0", "libGL.so.1", "libEGL.so.1")


def _load_missing_libraries() -> None:
    for name in _LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            # What is loaded under its own name already serves Qt's libraries too.
            if (_SPARE / name).exists():
                ctypes.CDLL(str(_SPARE / name), mode=ctypes.RTLD_GLOBAL)


def _name_fonts() -> None:
    if not Path("/etc/fonts/fonts.conf").exists() and "FONTCONFIG_FILE" not in os.environ:
        os.environ["FONTCONFIG_FILE"] = str(_SPARE / "fonts.conf")


def _forget_library_path() -> None:
    # It was for this process; a browser or file manager that is started must not see it.
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if before is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = before


_load_missing_libraries()
_name_fonts()
_forget_library_path()
