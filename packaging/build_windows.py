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
from bundle_build import ROOT, LocalPython, Places
from dev_console import DevError, Steps, say

ON_WINDOWS = sys.platform == "win32"
if not ON_WINDOWS:
    import windows_python
    import wine_run


def build_windows(options: argparse.Namespace) -> None:
    """Everything. Raises :class:`DevError`."""
    places = Places(ROOT / "build" / "windows", ROOT / "dist")
    places.work.mkdir(parents=True, exist_ok=True)
    n_bundle_steps = 0 if options.only_packages else 3 + (not options.no_smoke)
    steps = Steps(2 + n_bundle_steps + (not options.only_bundle))

    steps.begin("Looking for what the system must bring")
    engine = windows_llama.windows_build(bundle_build.pinned_llama())
    provide_system(options, compiles=not (engine.finished or options.only_packages))

    steps.begin("The packaging environment")
    python = make_python(places, sample=not options.no_sample)

    if not options.only_packages:
        make_bundle(steps, places, python, engine, sample=not options.no_sample)
        if not options.no_smoke:
            steps.begin("Running what was built")
            program = places.bundle / "moelauncher.exe"
            smoke.run_on_windows(program, places.work / "smoke", python.prefix)
    if not options.only_bundle:
        steps.begin("Packages and checksums")
        make_packages(places, python)


def make_bundle(
    steps: Steps,
    places: Places,
    python: WinePython | NativePython,
    engine_build: windows_llama.WindowsBuild,
    *,
    sample: bool,
) -> None:
    """The one-folder bundle. Raises :class:`DevError`."""
    steps.begin("llama.cpp for every processor" + ("" if engine_build.finished else ": once"))
    engine = bundle_engine.make_engine(windows_llama.provide(engine_build), places.work / "engine")
    modules = bundle_engine.modules_of(engine / "llama_cpp" / "lib")
    say(f"      modules: {', '.join(modules)}")

    steps.begin("Icons, version, facts about this build")
    facts = bundle_build.EngineFacts(
        engine_build.version, windows_llama.FLAGS, "Windows x86_64 mingw-w64"
    )
    extra = bundle_build.make_extra(places, python, facts)
    resource = windows_packages.version_resource(bundle_build.program_version())
    (extra / "version.txt").write_text(resource, encoding="utf-8")

    steps.begin("The one-folder bundle")
    bundle_build.make_bundle(places, python, engine, extra, sample=sample)
    windows_packages.check_bundle(places.bundle)
    bundle_build.say_sizes(places.bundle)


def make_packages(places: Places, python: WinePython | NativePython) -> None:
    """.zip and installer of the bundle that is there, which may have been signed meanwhile.

    Under Wine the installer is tried. Raises :class:`DevError`.
    """
    if not places.bundle.is_dir():
        raise DevError(f"There is no bundle in {places.bundle}; make it first.")
    version = bundle_build.program_version()
    icon = places.work / "extra" / "moelauncher.ico"
    files = windows_packages.make_packages(places.bundle, places.output, version, icon, places.work)
    if isinstance(python, WinePython):
        prefix = python.windows.prefix("installer")
        with smoke.x_screen() as display:
            installer_check.check_installer(files[-1], places.bundle, version, prefix, display)
    bundle_build.finish_packages(places.output, files)


def build_engine(options: argparse.Namespace) -> None:
    """Only llama.cpp for Windows, into the cache, to be carried to a Windows machine."""
    steps = Steps(2)
    steps.begin("Looking for what the system must bring")
    engine_build = windows_llama.windows_build(bundle_build.pinned_llama())
    if not engine_build.finished:
        _provide([*windows_llama.missing_tools(), *dev_system.missing_venv()], options)
    steps.begin("llama.cpp for every processor")
    say(f"      {windows_llama.provide(engine_build)}")


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
        needs += windows_llama.missing_tools()
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


def make_python(places: Places, *, sample: bool) -> WinePython | NativePython:
    """The Windows Python with the program's libraries and PyInstaller."""
    if ON_WINDOWS:
        return NativePython(bundle_build.make_environment(places, sample=sample).venv)
    return WinePython(windows_python.make())


class NativePython(LocalPython):
    """An environment of a Python on Windows itself."""

    #: There is no Wine here.
    prefix: None = None


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
