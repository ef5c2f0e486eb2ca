"""The packages for Linux: bundle, smoke test, tar.gz, .deb and checksums.

Standard library only.
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import bare_root
import bundle_build
import bundle_engine
import dev_llama
import dev_system
import dev_vulkan
import linux_packages
import smoke
from bundle_build import BUNDLE, ROOT, LocalPython, Places
from dev_console import DevError, Steps, say
from smoke_plan import Plan


def build_linux(options: argparse.Namespace) -> None:
    """Everything, for this machine's processor. Raises :class:`DevError`."""
    if not sys.platform.startswith("linux"):
        raise DevError("The packages for Linux are built on Linux.")
    places = Places(ROOT / "build" / "linux", ROOT / "dist")
    steps = Steps(5 + (not options.no_smoke) + (not options.only_bundle))
    version = bundle_build.program_version()
    sample = not options.no_sample

    steps.begin("Looking for what the system must bring")
    engine_build = dev_llama.loadable_build(bundle_build.pinned_llama())
    provide_system(options, compiles=engine_build.wheel is None)

    steps.begin(f"The packaging environment in {places.work}")
    python = bundle_build.make_environment(places, sample=sample)

    steps.begin("llama.cpp for every processor" + ("" if engine_build.wheel else ": once"))
    engine = make_engine(engine_build, places, python)

    steps.begin("Icons, facts about this build, spares for bare systems")
    facts = bundle_build.EngineFacts(
        engine_build.version,
        dev_llama.flags_of(engine_build.flavour),
        f"{platform.system()} {platform.machine()} {'-'.join(platform.libc_ver())}",
    )
    extra = bundle_build.make_extra(places, python, facts)
    spare = linux_packages.collect_spares(places.work / "spare", BUNDLE / "fonts.conf")

    steps.begin("The one-folder bundle")
    bundle = bundle_build.make_bundle(places, python, engine, extra, sample=sample, spare=spare)
    bundle_build.say_sizes(bundle)

    if not options.no_smoke:
        steps.begin("Running what was built")
        program = bundle / "moelauncher"
        smoke.run_smoke(Plan(program, places.work / "smoke", environment=smoke.screen_here()))
        smoke.check_portable(program, places.work / "smoke-portable")
        if not options.only_bundle:
            # What is published must run where nothing is installed.
            if reason := bare_root.can_make():
                say(f"      not tried on a bare system: {reason}")
            else:
                smoke.run_in_bare_roots(program, places.work / "smoke-bare")
    if not options.only_bundle:
        steps.begin("Packages and checksums")
        files = linux_packages.make_packages(
            bundle, places.output, version, extra / "icons", places.work
        )
        bundle_build.finish_packages(places.output, files)


def provide_system(options: argparse.Namespace, *, compiles: bool) -> None:
    """Installs, or names, the system packages that are missing."""
    needs = dev_system.missing_libraries(
        {
            **dev_system.QT_LIBRARIES,
            **dev_system.X11_LIBRARIES,
            **dev_system.VULKAN_LIBRARIES,
        }
    )
    needs += dev_system.missing_fonts()
    needs += dev_system.missing_venv()
    # PyInstaller reads programs with the compiler's companions.
    needs += dev_system.missing_compiler()
    if compiles:
        needs += dev_system.missing_vulkan(compiles=True)
    log = dev_llama.cache_folder() / "logs" / "system-packages.txt"
    dev_system.provide(needs, yes=options.yes, log=log)


def make_engine(build: dev_llama.Build, places: Places, python: LocalPython) -> Path:
    """The folder with the bundle's ``llama_cpp``, compiled first where the cache has none."""
    if build.wheel is None:
        cache = dev_llama.cache_folder()
        sdk = dev_vulkan.find_sdk(cache, cache / "logs" / "vulkan-headers.txt")
        dev_llama.compile_wheel(build, python.python, sdk)
    engine = bundle_engine.make_engine(dev_llama.unpack(build), places.work / "engine")
    modules = bundle_engine.modules_of(engine / "llama_cpp" / "lib")
    say(f"      modules: {', '.join(modules)}")
    return engine
