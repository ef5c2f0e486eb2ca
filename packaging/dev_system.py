"""What the machine must bring for ``dev.py``, which package brings it, and installing that.

Standard library only. A need is looked for by what it is for (a library is loaded, a compiler
found), never by asking the package manager, so that any way of having it counts.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dev_vulkan
from dev_console import DevError, run_logged, say


@dataclass(frozen=True)
class Need:
    """Something outside Python's packages: its package on each family of Linux systems."""

    what: str
    debian: str
    fedora: str
    arch: str

    def package(self, manager: str) -> str:
        """The package's name for ``apt-get``, ``dnf`` or ``pacman``."""
        return {"apt-get": self.debian, "dnf": self.fedora, "pacman": self.arch}[manager]


COMPILER = Need("a C++ compiler", "build-essential", "gcc-c++", "base-devel")
VENV = Need("Python's venv with ensurepip", "python3-venv", "python3", "python")
FONT = Need("a font", "fonts-dejavu-core", "dejavu-sans-fonts", "ttf-dejavu")
GLSLC = Need("the shader compiler glslc", "glslc", "glslc", "shaderc")
WINE = {
    "wine": Need("Wine", "wine", "wine", "wine"),
    "xvfb-run": Need("Xvfb", "xvfb", "xorg-x11-server-Xvfb", "xorg-server-xvfb"),
    "xauth": Need("xauth", "xauth", "xorg-x11-xauth", "xorg-xauth"),
}
"""What runs a Windows program here, on a screen that nobody sees."""
MINGW_C = Need("the MinGW C compiler", "gcc-mingw-w64-x86-64-posix", "mingw64-gcc", "mingw-w64-gcc")
VULKAN_HEADERS = [
    Need("Vulkan's headers", "libvulkan-dev", "vulkan-headers", "vulkan-headers"),
    Need("SPIR-V's headers", "spirv-headers", "spirv-headers-devel", "spirv-headers"),
]

QT_LIBRARIES = {
    "libEGL.so.1": Need("libEGL.so.1", "libegl1", "libglvnd-egl", "libglvnd"),
    "libGL.so.1": Need("libGL.so.1", "libgl1", "libglvnd-glx", "libglvnd"),
    "libxkbcommon.so.0": Need("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    "libdbus-1.so.3": Need("libdbus-1.so.3", "libdbus-1-3", "dbus-libs", "dbus"),
    "libfontconfig.so.1": Need("libfontconfig.so.1", "libfontconfig1", "fontconfig", "fontconfig"),
    "libglib-2.0.so.0": Need("libglib-2.0.so.0", "libglib2.0-0", "glib2", "glib2"),
    "libgomp.so.1": Need("libgomp.so.1", "libgomp1", "libgomp", "gcc-libs"),
}
"""What Qt and llama.cpp load in any case."""

X11_LIBRARIES = {
    "libxcb-cursor.so.0": Need(
        "libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"
    ),
    "libxkbcommon-x11.so.0": Need(
        "libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"
    ),
    "libxcb-icccm.so.4": Need("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    "libxcb-image.so.0": Need(
        "libxcb-image.so.0", "libxcb-image0", "xcb-util-image", "xcb-util-image"
    ),
    "libxcb-keysyms.so.1": Need(
        "libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"
    ),
    "libxcb-render-util.so.0": Need(
        "libxcb-render-util.so.0",
        "libxcb-render-util0",
        "xcb-util-renderutil",
        "xcb-util-renderutil",
    ),
    "libxcb-randr.so.0": Need("libxcb-randr.so.0", "libxcb-randr0", "libxcb", "libxcb"),
    "libxcb-shape.so.0": Need("libxcb-shape.so.0", "libxcb-shape0", "libxcb", "libxcb"),
    "libxcb-xkb.so.1": Need("libxcb-xkb.so.1", "libxcb-xkb1", "libxcb", "libxcb"),
}
"""What Qt loads besides on an X11 screen, and on Wayland for programs that use X11."""

VULKAN_LIBRARIES = {
    "libvulkan.so.1": Need("libvulkan.so.1", "libvulkan1", "vulkan-loader", "vulkan-icd-loader"),
}
SOFTWARE_GPU = Need(
    "Mesa's software Vulkan device", "mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-swrast"
)

MINGW_CXX = Need(
    "the MinGW C++ compiler",
    "g++-mingw-w64-x86-64-posix",
    "mingw64-gcc-c++",
    "mingw-w64-gcc",
)
NSIS = Need("the maker of Windows installers (NSIS)", "nsis", "nsis", "nsis")

_WINDOWS_COMPILER = """\
A C++ compiler is missing. Either install Microsoft's "Build Tools for Visual Studio" with
"Desktop development with C++":
    {winget}
(dev.py does that itself with --yes), or do without compiling and take upstream's ready build:
    python packaging/dev.py run --wheels vulkan     (any GPU; also cpu, cu124, cu130, cu132)"""

_WINGET = [
    "winget",
    "install",
    "--exact",
    "--id",
    "Microsoft.VisualStudio.2022.BuildTools",
    "--override",
    "--wait --passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended",
]


def has_display() -> bool:
    """Whether a window can be shown: always on Windows and macOS, by the session on Linux."""
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def loads(library: str) -> bool:
    """Whether the system's loader finds ``library`` by this name."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def missing_libraries(table: dict[str, Need], found: Callable[[str], bool] = loads) -> list[Need]:
    """The needs of ``table`` whose library cannot be loaded. Empty away from Linux."""
    if not sys.platform.startswith("linux"):
        return []
    return [need for library, need in table.items() if not found(library)]


def missing_fonts(folders: Iterable[Path] | None = None) -> list[Need]:
    """:data:`FONT` where no font file is found (Linux; Qt brings none of its own)."""
    if not sys.platform.startswith("linux"):
        return []
    return [] if next(font_files(folders), None) else [FONT]


def font_files(folders: Iterable[Path] | None = None) -> Iterator[Path]:
    """The font files of a Linux system, or of ``folders``."""
    if folders is None:
        folders = (
            Path("/usr/share/fonts"),
            Path("/usr/local/share/fonts"),
            Path.home() / ".local/share/fonts",
            Path.home() / ".fonts",
        )
    endings = {".ttf", ".otf", ".ttc"}
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.suffix.lower() in endings)


def missing_vulkan(*, compiles: bool) -> list[Need]:
    """What the Vulkan build needs: a loader and a device to run, the shader compiler to make."""
    needs = missing_libraries(VULKAN_LIBRARIES)
    if sys.platform.startswith("linux") and not _vulkan_drivers():
        needs.append(SOFTWARE_GPU)
    return [*needs, *missing_shader_tools()] if compiles else needs


def missing_shader_tools() -> list[Need]:
    """What compiling the Vulkan part takes, for whichever system."""
    needs = [] if shutil.which("glslc") else [GLSLC]
    if not dev_vulkan.has_headers() and not dev_vulkan.next_release():
        needs += VULKAN_HEADERS
    return needs


def _vulkan_drivers() -> bool:
    folders = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
    return any(any(Path(folder).glob("*.json")) for folder in folders)


def missing_venv() -> list[Need]:
    """:data:`VENV` where this Python cannot make an environment with pip in it."""
    complete = all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
    return [] if complete else [VENV]


def missing_compiler() -> list[Need]:
    """:data:`COMPILER` where llama.cpp could not be compiled."""
    return [] if has_compiler() else [COMPILER]


def missing_wine() -> list[Need]:
    """What making and running Windows programs here needs: Wine, a screen, a small compiler."""
    needs = [need for program, need in WINE.items() if not shutil.which(program)]
    return needs if mingw_c() else [*needs, MINGW_C]


def mingw_c() -> str | None:
    """The C compiler for 64-bit Windows, under the name that this system gives it."""
    names = ("x86_64-w64-mingw32-gcc-posix", "x86_64-w64-mingw32-gcc")
    return next((name for name in names if shutil.which(name)), None)


def missing_mingw_cxx() -> list[Need]:
    """:data:`MINGW_CXX` where llama.cpp could not be compiled for Windows."""
    return [] if mingw_cxx() else [MINGW_CXX]


def mingw_cxx() -> str | None:
    """The C++ compiler for 64-bit Windows, under the name that this system gives it."""
    names = ("x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++")
    return next((name for name in names if shutil.which(name)), None)


def has_compiler() -> bool:
    """Whether CMake would find a C++ compiler."""
    if os.environ.get("CXX"):
        return True
    if sys.platform != "win32":
        return any(shutil.which(name) for name in ("c++", "g++", "clang++"))
    if shutil.which("cl"):
        return True
    programs = os.environ.get("PROGRAMFILES(X86)", r"C:\Program Files (x86)")
    vswhere = Path(programs) / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
    if not vswhere.exists():
        return False
    tools = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
    answer = subprocess.run(
        [vswhere, "-products", "*", "-requires", tools, "-property", "installationPath"],
        capture_output=True,
        check=False,
    )
    return bool(answer.stdout.strip())


def package_manager() -> str | None:
    """``apt-get``, ``dnf`` or ``pacman``, whichever this machine has."""
    return next((name for name in ("apt-get", "dnf", "pacman") if shutil.which(name)), None)


def install_command(manager: str, packages: Sequence[str], *, as_root: bool) -> list[str]:
    """The command that installs ``packages``, with ``sudo`` where this user is not root."""
    verbs = {
        "apt-get": ["install", "--yes", "--no-install-recommends"],
        "dnf": ["install", "--assumeyes"],
        "pacman": ["--sync", "--needed", "--noconfirm"],
    }
    return [*([] if as_root else ["sudo"]), manager, *verbs[manager], *packages]


def advice(needs: Sequence[Need], manager: str | None, *, as_root: bool) -> str:
    """What is missing and the command that brings it, as text to show."""
    names = ", ".join(need.what for need in needs)
    if manager is None:
        return (
            f"Missing: {names}. Install them with your system's package manager "
            f"(on Debian they are called: {' '.join(packages_of(needs, 'apt-get'))})."
        )
    command = install_command(manager, packages_of(needs, manager), as_root=as_root)
    return f"Missing: {names}. Install with\n    {' '.join(command)}\nor let --yes do it."


def packages_of(needs: Sequence[Need], manager: str) -> list[str]:
    """Package names without repetition, in order."""
    return list(dict.fromkeys(need.package(manager) for need in needs))


def provide(needs: Sequence[Need], *, yes: bool, log: Path) -> None:
    """Installs what is missing where it may; otherwise raises :class:`DevError` naming it.

    It may as root on a Debian or Ubuntu, and anywhere with ``yes``.
    """
    if not needs:
        return
    if sys.platform == "win32":
        _provide_on_windows(needs, yes=yes)
        return
    manager = package_manager()
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    text = advice(needs, manager, as_root=as_root)
    if manager is None or not (yes or (as_root and manager == "apt-get")):
        raise DevError(text)
    packages = packages_of(needs, manager)
    say(f"      Missing: {', '.join(need.what for need in needs)}")
    if as_root:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        if manager == "apt-get":
            refresh_lists(log, environment)
        command = install_command(manager, packages, as_root=True)
        what = f"installing {' '.join(packages)}"
        run_logged(command, log=log, what=what, environment=environment)
        return
    # Not logged: sudo may ask for the password.
    command = install_command(manager, packages, as_root=False)
    say(f"      {' '.join(command)}")
    if manager == "apt-get":
        subprocess.run(["sudo", manager, "update"], check=False)
    if subprocess.run(command, check=False).returncode:
        raise DevError(f"That failed. {text}")


def refresh_lists(log: Path, environment: dict[str, str]) -> None:
    """``apt-get update``; one unreachable source among several must not end the set-up."""
    try:
        what = "refreshing the package lists"
        run_logged(["apt-get", "update"], log=log, what=what, environment=environment)
    except DevError:
        say("      not all package lists could be refreshed; going on with those there are")


def _provide_on_windows(needs: Sequence[Need], *, yes: bool) -> None:
    if COMPILER not in needs:
        raise DevError(
            f"Missing: {', '.join(need.what for need in needs)}. Install Python again from "
            "python.org or the Microsoft Store, with all its optional parts."
        )
    shown = subprocess.list2cmdline(_WINGET)
    if not (yes and shutil.which("winget")):
        raise DevError(_WINDOWS_COMPILER.format(winget=shown))
    say(f"      {shown}")
    if subprocess.run(_WINGET, check=False).returncode or not has_compiler():
        raise DevError("That failed. " + _WINDOWS_COMPILER.format(winget=shown))
