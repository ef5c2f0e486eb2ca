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
_MEANING = {
    "passed": "passed",
    "xfailed": "failed as listed",
    "xpassed": "listed and passed",
    "skipped": "not for Windows",
    "failed": "FAILED",
    "error": "ERRORS",
}


@dataclass(frozen=True)
class Result:
    """How the tests of one room ended."""

    code: int
    counts: Mapping[str, int]
    elapsed_s: float


def run(arguments: Sequence[str], *, yes: bool) -> int:
    """Sets all up and runs the tests; returns 1 where any fails that is not listed.

    ``arguments`` go to pytest; without any, all tests run, a room at a time.
    """
    if not sys.platform.startswith("linux"):
        raise DevError("Wine runs Windows programs on Linux; on Windows, run the tests without it.")
    version = dev_llama.pinned_version(windows_python.PROJECT.read_text(encoding="utf-8"))
    build = windows_llama.windows_build(version)
    parts = [list(arguments)] if arguments else [[room] for room in rooms(ROOT / "tests")]
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
    """A line a room, and one for all."""
    total = dict.fromkeys(_MEANING, 0)
    lines = []
    for name, result in results.items():
        for kind, number in result.counts.items():
            total[kind] += number
        verdict = "ok" if result.code == 0 else f"FAILED (exit code {result.code})"
        words = in_words(result.counts)
        lines.append(f"{name:24} {format_elapsed(result.elapsed_s):>12}  {verdict}: {words}")
    elapsed = format_elapsed(sum(result.elapsed_s for result in results.values()))
    return [*lines, f"{'all':24} {elapsed:>12}  {in_words(total)}"]


def in_words(counts: Mapping[str, int]) -> str:
    """``120 passed, 3 failed as listed``."""
    named = [f"{counts[kind]} {word}" for kind, word in _MEANING.items() if counts.get(kind)]
    return ", ".join(named) or "no result"


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
