"""How fast the model list is with thousands of models, cold and cached, and what it weighs.

    python -m tests.benchmarks.bench_library [--models 2000] [--folders 300]

Prints one JSON line a measurement. Cold: no header cache (the system's file cache is warm: the
files were just written), once by one process and once on all cores. Cached: a second start. The
window's own part is the time from a bundle of rows to a list that shows them; "cached start" is the
built program on those folders: from the shown window to all its rows (``looked_s``: until every
file was looked at again), with the longest turn of its event loop. CPU seconds, which a busy
machine does not stretch, are those of the window's thread, and for all rows those of the whole
process. Memory is that of entries and rows, by tracemalloc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moelauncher.core.files.header_cache import HeaderCache
from moelauncher.core.library.catalog import scan
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.header_workers import header_workers
from tests.helpers.gguf_files import write_tiny_model

_SHAPES = ("moe", "dense", "shared", "fused", "sliding", "hybrid", "interleaved", "mla")
#: A vocabulary as real models have: it is what takes the time in a header.
_VOCABULARY = 150_000


def _tell(name: str, **values: object) -> None:
    print(json.dumps({"measurement": name, **values}))


@contextmanager
def _timed(name: str, **values: object) -> Iterator[dict[str, object]]:
    more: dict[str, object] = dict(values)
    begun = time.perf_counter()
    yield more
    _tell(name, seconds=round(time.perf_counter() - begun, 3), **more)


def build_tree(root: Path, n_models: int, n_folders: int) -> None:
    """``n_models`` files in ``n_folders`` folders; one source a shape, copied."""
    sources = []
    tokens = [f"token {number}" for number in range(_VOCABULARY)]
    for shape in _SHAPES:
        path = root / f"source-{shape}.gguf"
        write_tiny_model(path, shape, name=f"Source {shape}", metadata={"bench.tokens": tokens})
        sources.append(path.read_bytes())
        path.unlink()
    for number in range(n_models):
        folder = root / f"maker-{number % 25:02d}" / f"model-{number % n_folders:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        data = sources[number % len(sources)]
        (folder / f"model-{number:05d}-Q8_0.gguf").write_bytes(data)


def _scan(root: Path, cache: Path, *, all_cores: bool = True) -> list[CatalogEntry]:
    entries: list[CatalogEntry] = []
    begun = time.perf_counter()
    first_s = None
    with _timed("scan", cached=cache.exists(), all_cores=all_cores) as more:
        known = HeaderCache(cache)
        with header_workers([root], known, lambda: not all_cores):
            for entry in scan([root], cache=known):
                if first_s is None:
                    first_s = time.perf_counter() - begun
                entries.append(entry)
        more["models"] = len(entries)
        more["first_row_s"] = None if first_s is None else round(first_s, 4)
    return entries


def _window(entries: list[CatalogEntry]) -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtWidgets import QApplication

    from moelauncher.gui.library.model_list_pane import ModelListPane
    from moelauncher.gui.theme import apply_theme

    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication([])
    apply_theme(app, "dark")
    pane = ModelListPane()
    pane.resize(272, 800)
    pane.show()
    app.processEvents()
    tracemalloc.start()
    with _timed("rows shown", models=len(entries)):
        pane.set_entries(entries)
        app.processEvents()
        pane.grab()
    _tell("rows weigh", mib=round(tracemalloc.get_traced_memory()[0] / (1 << 20), 1))
    tracemalloc.stop()
    with _timed("filtered"):
        pane.filter.setText("hybrid")
        app.processEvents()
        pane.grab()
    pane.close()


def _start(root: Path, basedir: Path) -> None:
    """The whole program on these folders: its first start fills the cache, the second counts."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from moelauncher.core.paths import app_paths
    from moelauncher.core.program.settings import MODEL_FOLDERS, Settings

    settings = Settings.load(app_paths(basedir).settings_file)
    settings.set(MODEL_FOLDERS, (str(root),))
    settings.save()
    for _ in range(2):
        # A process of its own: what is imported after the first paint is part of it.
        command = [sys.executable, "-m", "tests.benchmarks.bench_library", "--start", str(basedir)]
        subprocess.run(command, check=True)


def _watch_start(basedir: Path) -> None:
    from moelauncher import app
    from moelauncher.core.paths import app_paths

    cached = any(app_paths(basedir).headers_folder.glob("*"))
    program = app.build(["--basedir", str(basedir)])
    pane = program.window.model_list
    turns: list[tuple[float, float]] = []
    first_row_s = None
    counted = [(0, 0.0, 0.0)]  # rows, seconds since the window, CPU seconds of the process
    shown_s, shown_cpu_s = time.perf_counter(), time.thread_time()
    process_cpu_s = time.process_time()
    while True:
        begun_s, begun_cpu_s = time.perf_counter(), time.thread_time()
        program.app.processEvents()
        now_s = time.perf_counter()
        turns.append((time.thread_time() - begun_cpu_s, now_s - begun_s))
        n_rows = pane.list.model().rowCount()
        if n_rows > counted[-1][0]:
            counted.append((n_rows, now_s - shown_s, time.process_time() - process_cpu_s))
        if first_row_s is None and n_rows:
            first_row_s = now_s - shown_s
        if first_row_s is not None and pane.refresh_button.isEnabled():
            break
        time.sleep(0.001)
    _tell(
        "start",
        cached=cached,
        rows=pane.list.model().rowCount(),
        first_row_s=round(first_row_s, 3),
        all_rows_s=round(counted[-1][1], 3),
        all_rows_cpu_s=round(counted[-1][2], 3),
        looked_s=round(time.perf_counter() - shown_s, 3),
        cpu_s=round(time.thread_time() - shown_cpu_s, 3),
        longest_turn_cpu_s=round(max(turns)[0], 3),
        longest_turn_s=round(max(wall for _, wall in turns), 3),
    )
    program.close()


def main() -> None:
    """Build a tree, scan it cold and cached, show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=300)
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.start is not None:
        _watch_start(options.start)
        return
    root = Path(tempfile.mkdtemp(prefix="bench-library-"))
    try:
        with _timed("tree written"):
            build_tree(root / "models", options.models, options.folders)
        _scan(root / "models", root / "one core", all_cores=False)
        _scan(root / "models", root / "cache")
        tracemalloc.start()
        entries = _scan(root / "models", root / "cache")
        _tell("entries weigh", mib=round(tracemalloc.get_traced_memory()[0] / (1 << 20), 1))
        tracemalloc.stop()
        entries = _scan(root / "models", root / "cache")
        _window(entries)
        _start(root / "models", root / "base")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
