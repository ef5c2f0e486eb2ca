"""The test suite under Wine, with a Windows Python: what ``dev.py test --wine`` does.

Standard library only. Each room's tests run in a process of their own, so that one which ends
its process costs no more than its room. Tests that fail for Wine's own reasons are listed in
``wine/known_failures.toml``; all others must pass.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dev_llama
import dev_system
import windows_llama
import windows_python
import wine_run
from dev_console import DevError, Steps, format_elapsed, say

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = "tests.helpers.wine_list"
TEST_LIMIT_S = 1200

_LAST_LINE = re.compile(r"(?:\d+ \w+(?:, )?)+ in [\d.]+s")
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped|xfailed|xpassed)")
_KEPT_BYTES = 4096
_COLUMNS = {
    "passed": "passed",
    "xfailed": "known failures",
    "skipped": "skipped",
    "xpassed": "known, but passed",
    "failed": "FAILED",
    "error": "ERRORS",
}
_ALWAYS_SHOWN = ("passed", "xfailed", "skipped")


@dataclass(frozen=True)
class Result:
    """How the tests of one room ended."""

    code: int
    counts: Mapping[str, int]
    elapsed_s: float


def run(arguments: Sequence[str], *, yes: bool) -> int:
    """Sets all up and runs the tests; returns 1 where any fails that is not listed.

    ``arguments`` go to pytest; without any, all tests run, a room at a time. So do rooms and files
    that are named, in their order, where nothing else is.
    """
    if not sys.platform.startswith("linux"):
        raise DevError("Wine runs Windows programs on Linux; on Windows, run the tests without it.")
    version = dev_llama.pinned_version(windows_python.PROJECT.read_text(encoding="utf-8"))
    build = windows_llama.windows_build(version)
    parts = parts_of(arguments)
    steps = Steps(3 + len(parts))
    steps.begin("Looking for what the system must bring")
    provide_system(yes=yes, compiles=not build.finished)
    steps.begin("llama.cpp for Windows" + (", kept from before" if build.finished else ": once"))
    libraries = windows_llama.provide(build)
    steps.begin("Python for Windows and its libraries")
    windows = windows_python.make()
    prefix = windows.prefix("tests")
    results: dict[str, Result] = {}
    for part in parts:
        name = " ".join(part)
        steps.begin(name)
        tail = _Tail()
        started_s = time.monotonic()
        code = wine_run.run(
            prefix,
            [windows.python, *pytest_arguments(part)],
            show=tail.show,
            environment=variables(libraries),
            folder=ROOT,
        )
        results[name] = Result(code, counts_in(tail.text), time.monotonic() - started_s)
    say("")
    for line in report(results):
        say(line)
    return 1 if any(result.code for result in results.values()) else 0


def rooms(tests: Path) -> list[str]:
    """Every folder with tests somewhere in it, and each file beside them, as pytest takes them."""
    folders = {
        folder for folder in tests.iterdir() if folder.is_dir() and any(folder.rglob("test_*.py"))
    }
    files = set(tests.glob("test_*.py"))
    return [path.relative_to(tests.parent).as_posix() for path in sorted(folders | files)]


def parts_of(arguments: Sequence[str]) -> list[list[str]]:
    """What each process of pytest gets: a room, or all ``arguments`` where options are among them
    or tests are named more narrowly than by their file."""
    paths = list(arguments) or rooms(ROOT / "tests")
    if all((ROOT / path).exists() for path in paths):
        return [[path] for path in paths]
    return [paths]


def provide_system(*, yes: bool, compiles: bool) -> None:
    """Installs, or names, the system packages that are missing."""
    needs = [*dev_system.missing_wine(), *dev_system.missing_venv(), *dev_system.missing_fonts()]
    if compiles:
        needs += windows_llama.missing_tools()
    log = dev_llama.cache_folder() / "logs" / "system-packages.txt"
    dev_system.provide(needs, yes=yes, log=log)


def pytest_arguments(part: Sequence[str]) -> list[str]:
    """What the Windows Python gets: pytest, with the list of known failures.

    Wine takes its time, and on Windows a test that exceeds its limit ends the whole run.
    """
    limit = f"--timeout={TEST_LIMIT_S}"
    return ["-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", limit, *part]


def variables(libraries: Path) -> dict[str, str]:
    """Where the tests find llama.cpp and the kept models, as Windows names these places."""
    cache = dev_llama.cache_folder()
    return {
        "PYTHONPATH": str(wine_run.windows_path(libraries)),
        "MOELAUNCHER_BUILD_CACHE": str(wine_run.windows_path(cache)),
        # Wine hands this machine's Vulkan on; GPU offload is tested on Linux.
        "MOELAUNCHER_BACKENDS": "none",
        # The compiled files of Linux's Python lie beside the sources: these would replace them.
        "PYTHONPYCACHEPREFIX": str(wine_run.windows_path(cache / "wine-pycache")),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "QT_QPA_PLATFORM": "offscreen",
    }


def counts_in(text: str) -> dict[str, int]:
    """Numbers by their kind from the last line of pytest's output; empty where it has none."""
    lines = _LAST_LINE.findall(text)
    return {kind: int(number) for number, kind in _COUNT.findall(lines[-1])} if lines else {}


def report(results: Mapping[str, Result]) -> list[str]:
    """A table: a line a room, and one for all. What nothing came to has no column."""
    total = {
        kind: sum(result.counts.get(kind, 0) for result in results.values()) for kind in _COLUMNS
    }
    kinds = [kind for kind in _COLUMNS if total[kind] or kind in _ALWAYS_SHOWN]
    rows = [["", "time", *(_COLUMNS[kind] for kind in kinds), ""]]
    for name, result in results.items():
        ending = "" if result.code == 0 else f"pytest's exit code {result.code}"
        rows.append([name, *_figures(result.elapsed_s, result.counts, kinds), ending])
    elapsed_s = sum(result.elapsed_s for result in results.values())
    rows.append(["all", *_figures(elapsed_s, total, kinds), ""])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in (0, len(row) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _figures(elapsed_s: float, counts: Mapping[str, int], kinds: Sequence[str]) -> list[str]:
    """A row's cells. A process that died before it could count has ``?``."""
    cells = [str(counts.get(kind, 0)) if counts else "?" for kind in kinds]
    return [format_elapsed(elapsed_s), *cells]


class _Tail:
    """Shows output, and keeps the end of it."""

    def __init__(self) -> None:
        self._end = b""

    def show(self, output: bytes) -> None:
        self._end = (self._end + output)[-_KEPT_BYTES:]
        wine_run.show_here(output)

    @property
    def text(self) -> str:
        return self._end.decode("utf-8", "replace")
