"""The llama.cpp build that ``dev.py`` installs: compiled here once, or taken ready from upstream.

Standard library only. Compiling takes minutes, so each finished wheel is kept outside the
clone, in :func:`cache_folder`, under a name that says what it was built for: a build with
GGML_NATIVE uses this very processor's instructions and may crash on another.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev_console import DevError, run_logged, say
from dev_lock import alone
from dev_vulkan import VulkanSdk

PACKAGE = "llama-cpp-python"
UPSTREAM_WHEELS = "https://abetlen.github.io/llama-cpp-python/whl/"
FLAVOURS = ("build", "cpu", "vulkan", "cu124", "cu130", "cu132", "rocm72", "hip-radeon")
"""``build`` compiles for this processor; the others are upstream's ready wheels."""

_FLAGS = {
    "native-cpu": ("-DLLAVA_BUILD=OFF",),
    # Every instruction set as a module of its own, so that it runs on any processor. The modules
    # would land in the wheel's bin/: the last flag puts them beside the library that loads them.
    "loadable": (
        "-DGGML_BACKEND_DL=ON",
        "-DGGML_CPU_ALL_VARIANTS=ON",
        "-DGGML_NATIVE=OFF",
        "-DGGML_VULKAN=ON",
        "-DLLAVA_BUILD=OFF",
        "-DCMAKE_INSTALL_BINDIR=llama_cpp/lib",
    ),
}
_EXPECTED = {
    "native-cpu": "ggml-cpu",
    "loadable": "ggml-cpu-haswell",
}
"""A library that only this kind of build has."""


@dataclass(frozen=True)
class Build:
    """One llama.cpp build: where it comes from and the folder its wheel is kept in."""

    version: str
    flavour: str
    folder: Path

    @property
    def wheel(self) -> Path | None:
        """The finished wheel, or ``None`` while there is none."""
        return next(iter(sorted(self.folder.glob("*.whl"))), None)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where finished wheels are kept: ``$MOELAUNCHER_BUILD_CACHE``, else the user's cache."""
    if chosen := environ.get("MOELAUNCHER_BUILD_CACHE"):
        return Path(chosen).absolute()  # its builds run in folders of their own
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "moelauncher-build"


def pinned_version(project_text: str) -> str:
    """The release that ``pyproject.toml`` pins."""
    match = re.search(rf'"{PACKAGE}==([0-9.]+)"', project_text)
    if match is None:
        raise DevError(f"pyproject.toml pins no {PACKAGE} release.")
    return match.group(1)


def processor_features() -> str:
    """What GGML_NATIVE compiles for: the processor's instruction sets, as the system names them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    return features_of(text)


def features_of(cpuinfo: str) -> str:
    """The feature words of the first processor in ``/proc/cpuinfo``, sorted."""
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return " ".join(sorted(set(match.group(1).split()))) if match else ""


def key_of(version: str, flavour: str, flags: tuple[str, ...], machine: str) -> str:
    """The folder name of a build: readable, and different wherever the bytes would differ."""
    digest = hashlib.sha256("\n".join((version, *flags, machine)).encode()).hexdigest()
    return f"llama_cpp_python-{version}-{flavour}-{digest[:12]}"


def flags_of(flavour: str) -> tuple[str, ...]:
    """The CMake flags of a build that is compiled here; empty for upstream's."""
    return _FLAGS.get(flavour, ())


def native_build(version: str) -> Build:
    """The build compiled on and for this machine's processor."""
    libc = "-".join(platform.libc_ver())
    machine = "\n".join((sys.platform, platform.machine(), libc, processor_features()))
    key = key_of(version, "native-cpu", _FLAGS["native-cpu"], machine)
    return Build(version, "native-cpu", cache_folder() / key)


def loadable_build(version: str) -> Build:
    """The build that packages carry and that GPU offload is tested with: all processors'
    variants and Vulkan, loaded at the start."""
    libc = "-".join(platform.libc_ver())
    machine = "\n".join((sys.platform, platform.machine(), libc))
    key = key_of(version, "loadable", _FLAGS["loadable"], machine)
    return Build(version, "loadable", cache_folder() / key)


def ready_build(version: str, flavour: str) -> Build:
    """Upstream's ready wheel of that flavour."""
    machine = f"{sys.platform}-{platform.machine()}"
    return Build(version, flavour, cache_folder() / key_of(version, flavour, (), machine))


def compile_wheel(build: Build, python: Path, vulkan: VulkanSdk | None = None) -> None:
    """Compiles ``build`` with the environment's ``python`` and moves the wheel to its folder.

    Raises :class:`DevError` with the end of the compiler's output. An interrupted or failed
    build leaves nothing that a later run would take for a finished one.
    """
    flags = [*_FLAGS[build.flavour], *(vulkan.cmake_flags if vulkan else ())]
    environment = {**os.environ, "CMAKE_ARGS": " ".join(flags)}
    environment.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
    # With it set, ggml switches every SIMD instruction off.
    environment.pop("SOURCE_DATE_EPOCH", None)
    command = [
        *(str(python), "-m", "pip", "wheel", "--verbose", "--no-deps"),
        # pip's own cache does not look at CMAKE_ARGS: it would serve one build for the other.
        *("--no-cache-dir", "--no-binary", PACKAGE),
        f"{PACKAGE}=={build.version}",
    ]
    kind = "for every processor " if build.flavour == "loadable" else ""
    what = f"compiling llama.cpp {kind}({environment['CMAKE_BUILD_PARALLEL_LEVEL']} cores)"
    _make(build, command, what, environment, expected=_EXPECTED[build.flavour])


def fetch_wheel(build: Build, python: Path) -> None:
    """Takes upstream's ready wheel. Raises :class:`DevError` where there is none."""
    command = [
        *(str(python), "-m", "pip", "wheel", "--no-deps", "--only-binary", PACKAGE),
        *("--progress-bar", "off"),
        *("--extra-index-url", UPSTREAM_WHEELS + build.flavour),
        f"{PACKAGE}=={build.version}",
    ]
    what = f"taking upstream's ready {build.flavour} wheel"
    try:
        _make(build, command, what, dict(os.environ), expected="ggml")
    except DevError as error:
        raise DevError(
            f"{error}\nEither the network failed (then run this again), or upstream has no "
            f"{build.flavour} wheel of {build.version} for this system: try another --wheels, or "
            "compile it here with --wheels build."
        ) from error


def _make(
    build: Build, command: list[str], what: str, environment: dict[str, str], expected: str
) -> None:
    lock = build.folder.parent / "locks" / f"{build.folder.name}.lock"
    with alone(lock, "another run that makes the same build"):
        if build.wheel is None:
            _make_alone(build, command, what, environment, expected)


def _make_alone(
    build: Build, command: list[str], what: str, environment: dict[str, str], expected: str
) -> None:
    log = build.folder.parent / "logs" / f"{build.folder.name}.txt"
    say(f"      {what}; its output goes to {log}")
    with tempfile.TemporaryDirectory(dir=build.folder.parent, prefix="unfinished-") as making:
        run_logged([*command, "--wheel-dir", making], log=log, what=what, environment=environment)
        wheel = next(Path(making).glob("*.whl"), None)
        if wheel is None or not _contains_library(wheel, expected):
            raise DevError(f"{what} gave a wheel without {expected}. See {log}.")
        # Renaming last: a folder with a wheel in it holds a whole one.
        shutil.rmtree(build.folder, ignore_errors=True)
        build.folder.mkdir()
        wheel.replace(build.folder / wheel.name)


def _contains_library(wheel: Path, name: str) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        return any(is_library(member, name) for member in archive.namelist())


def is_library(member: str, name: str) -> bool:
    """Whether a wheel's ``member`` is the library ``name`` (every build carries every header)."""
    file = Path(member).name
    return bool(re.fullmatch(rf"(lib)?{re.escape(name)}\.(so(\.[\d.]+)?|dll|dylib)", file))


def unpack(build: Build) -> Path:
    """A folder that has ``build``'s ``llama_cpp`` package in it, beside no other package."""
    assert build.wheel is not None
    target = build.folder / "unpacked"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=build.folder, prefix="unfinished-") as making:
            with zipfile.ZipFile(build.wheel) as archive:
                archive.extractall(making)
            whole = Path(making) / "whole"
            whole.mkdir()
            (Path(making) / "llama_cpp").replace(whole / "llama_cpp")
            whole.replace(target)
    return target


def install(build: Build, python: Path, log: Path) -> None:
    """Puts the wheel into the environment, over whatever build was there before."""
    command = [str(python), "-m", "pip", "install", "--no-deps", "--force-reinstall"]
    command.append(str(build.wheel))
    run_logged(command, log=log, what=f"installing llama.cpp ({build.flavour})")
