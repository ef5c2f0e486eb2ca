"""The packages for Windows: bundle, smoke test, .zip, installer and checksums.

Standard library only. On Linux a Windows Python runs under Wine; on Windows this machine's own
does. llama.cpp is the same in both: compiled on Linux by mingw, see ``windows_llama``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bundle_build
import bundle_engine
import dev_llama
import dev_system
import installer_check
import smoke
import windows_llama
import windows_packages
from bundle_build import ROOT, BundlePython, LocalPython, Places
from dev_console import DevError, Steps, run_logged, say

ON_WINDOWS = sys.platform == "win32"
if not ON_WINDOWS:
    import windows_python
    import wine_run


def build_windows(options: argparse.Namespace) -> None:
    """Everything. Raises :class:`DevError`."""
    places = Places(ROOT / "build" / "windows", ROOT / "dist")
    steps = Steps(5 + (not options.no_smoke) + (not options.only_bundle))
    version = bundle_build.program_version()
    sample = not options.no_sample
    places.work.mkdir(parents=True, exist_ok=True)

    steps.begin("Looking for what the system must bring")
    engine_build = windows_llama.windows_build(bundle_build.pinned_llama())
    provide_system(options, compiles=not engine_build.finished)

    steps.begin("The packaging environment")
    python = make_python(places, sample=sample)

    steps.begin("llama.cpp for every processor" + ("" if engine_build.finished else ": once"))
    engine = make_engine(engine_build, places)

    steps.begin("Icons, version, facts about this build")
    facts = bundle_build.EngineFacts(
        engine_build.version, windows_llama.FLAGS, "Windows x86_64 mingw-w64"
    )
    extra = bundle_build.make_extra(places, python, facts)
    resource = windows_packages.version_resource(version)
    (extra / "version.txt").write_text(resource, encoding="utf-8")

    steps.begin("The one-folder bundle")
    bundle = bundle_build.make_bundle(places, python, engine, extra, sample=sample)
    windows_packages.check_bundle(bundle)
    bundle_build.say_sizes(bundle)

    if not options.no_smoke:
        steps.begin("Running what was built")
        prefix = python.prefix if isinstance(python, WinePython) else None
        smoke.run_on_windows(bundle / "moelauncher.exe", places.work / "smoke", prefix)
    if not options.only_bundle:
        steps.begin("Packages and checksums")
        files = windows_packages.make_packages(
            bundle, places.output, version, extra / "moelauncher.ico", places.work
        )
        if isinstance(python, WinePython):
            with smoke.x_screen() as display:
                installer_check.check_installer(
                    files[-1], bundle, version, python.windows.prefix("installer"), display
                )
        bundle_build.finish_packages(places.output, files)


def build_engine(options: argparse.Namespace) -> None:
    """Only llama.cpp for Windows, into the cache, to be carried to a Windows machine."""
    steps = Steps(2)
    steps.begin("Looking for what the system must bring")
    engine_build = windows_llama.windows_build(bundle_build.pinned_llama())
    if not engine_build.finished:
        _provide(engine_needs(), options)
    steps.begin("llama.cpp for every processor")
    say(f"      {windows_llama.provide(engine_build)}")


def engine_needs() -> list[dev_system.Need]:
    """What is missing to compile llama.cpp for Windows."""
    needs = [*dev_system.missing_mingw_cxx(), *dev_system.missing_venv()]
    # A part of it runs here while the rest is compiled.
    return [*needs, *dev_system.missing_compiler(), *dev_system.missing_shader_tools()]


def provide_system(options: argparse.Namespace, *, compiles: bool) -> None:
    """Installs, or names, the system packages that are missing."""
    needs = dev_system.missing_venv()
    if not ON_WINDOWS:
        needs += dev_system.missing_wine()
    if compiles:
        if ON_WINDOWS:
            raise DevError(
                "llama.cpp for Windows is compiled on Linux: run there\n"
                "    python3 packaging/build.py windows-engine\n"
                f"and copy the folder that it names into {dev_llama.cache_folder()}."
            )
        needs += engine_needs()
    if not options.only_bundle:
        if ON_WINDOWS and windows_packages.missing_makensis():
            raise DevError(
                "NSIS is missing. Install it (winget install NSIS.NSIS), or make no packages with "
                "--only-bundle."
            )
        needs += windows_packages.missing_makensis()
    _provide(needs, options)


def _provide(needs: Sequence[dev_system.Need], options: argparse.Namespace) -> None:
    log = dev_llama.cache_folder() / "logs" / "system-packages.txt"
    dev_system.provide(needs, yes=options.yes, log=log)


def make_python(places: Places, *, sample: bool) -> BundlePython:
    """The Windows Python with the program's libraries and PyInstaller."""
    if ON_WINDOWS:
        return bundle_build.make_environment(places, sample=sample)
    return WinePython(windows_python.make(_python_with_pip(places)))


def _python_with_pip(places: Places) -> Path:
    """This machine's own, which a Debian gives no pip, in an environment of its own."""
    venv = LocalPython(places.work / "pip")
    if not venv.python.exists():
        run_logged(
            [sys.executable, "-m", "venv", "--clear", str(venv.venv)],
            log=places.log("environment"),
            what="making an environment for pip",
        )
    return venv.python


def make_engine(build: windows_llama.WindowsBuild, places: Places) -> Path:
    """The folder with the bundle's ``llama_cpp``, compiled first where the cache has none."""
    engine = bundle_engine.make_engine(windows_llama.provide(build), places.work / "engine")
    modules = bundle_engine.modules_of(engine / "llama_cpp" / "lib")
    say(f"      modules: {', '.join(modules)}")
    return engine


@dataclass(frozen=True)
class WinePython:
    """A Windows Python on Linux."""

    windows: windows_python.WindowsPython

    @property
    def prefix(self) -> wine_run.Prefix:
        """The Windows that it runs in; the tests have another one."""
        return self.windows.prefix("build")

    @property
    def site_packages(self) -> Path:
        """Where its libraries lie, as this machine sees it."""
        return self.windows.site_packages

    def path(self, path: Path) -> str:
        """``path`` on Windows' drive for this machine's root."""
        return str(wine_run.windows_path(path))

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
        wine_run.run_wine_logged(
            self.prefix,
            [self.windows.python, *arguments],
            log=log,
            what=what,
            environment=environment,
            folder=folder,
        )
