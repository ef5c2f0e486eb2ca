"""llama.cpp's source as the pinned llama-cpp-python release carries it, and tools to compile it.

Standard library only. For builds that are no wheel: those that a package's own build makes are
in ``dev_llama``.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from pathlib import Path

import dev_llama
from dev_console import DevError, run_logged


def make_tools(work: Path, log: Path) -> Path:
    """An environment with CMake and Ninja in ``work``, made at the first call; returns its folder
    of programs."""
    tools = work / "tools"
    programs = tools / ("Scripts" if sys.platform == "win32" else "bin")
    if all(any(programs.glob(f"{name}*")) for name in ("cmake", "ninja")):
        return programs
    making = [sys.executable, "-m", "venv", "--clear", str(tools)]
    run_logged(making, log=log, what="a place for tools")
    pip = [str(programs / "python"), "-m", "pip", "install", "--progress-bar", "off"]
    # They come as packages, as they do for every other build of llama.cpp.
    run_logged([*pip, "cmake<4", "ninja"], log=log, what="taking CMake and Ninja")
    return programs


def fetch_source(version: str, programs: Path, work: Path, log: Path) -> Path:
    """The unpacked source of that release, in ``work``, fetched at the first call.

    Raises :class:`DevError`.
    """
    root = work / "source" / f"llama_cpp_python-{version}"
    if root.is_dir():
        return root
    command = [str(programs / "python"), "-m", "pip", "download", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", str(work), f"{dev_llama.PACKAGE}=={version}"]
    run_logged(command, log=log, what="taking llama.cpp's source")
    archive = work / f"llama_cpp_python-{version}.tar.gz"
    if not archive.is_file():
        raise DevError(f"The package index has no source archive of {dev_llama.PACKAGE} {version}.")
    unfinished = work / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    with tarfile.open(archive) as content:
        # Debian 12's Python has no filters; the archive is the one that pip would build from.
        content.extractall(unfinished)
    (unpacked,) = unfinished.iterdir()
    root.parent.mkdir(exist_ok=True)
    return unpacked.rename(root)
