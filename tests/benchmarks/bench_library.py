"""How fast the model list is with thousands of models, cold and cached, and what it weighs.

    python -m tests.benchmarks.bench_library [--models 2000] [--folders 300]

Prints one JSON line a measurement. Cold: no header cache (the system's file cache is warm: the
files were just written). Cached: a second start. The window's own part is the time from a bundle of
rows to a list that shows them. Memory is that of the entries and their rows, by tracemalloc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moelauncher.core.catalog import CatalogEntry, scan
from moelauncher.core.header_cache import HeaderCache
from moelauncher.core.header_workers import header_workers
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


def _scan(root: Path, cache: Path) -> list[CatalogEntry]:
    entries: list[CatalogEntry] = []
    begun = time.perf_counter()
    first_s = None
    with _timed("scan", cached=cache.exists()) as more:
        known = HeaderCache(cache)
        with header_workers([root], known, lambda: False):
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

    from moelauncher.gui.model_list_pane import ModelListPane
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


def main() -> None:
    """Build a tree, scan it cold and cached, show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--folders", type=int, default=300)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="bench-library-"))
    try:
        with _timed("tree written"):
            build_tree(root / "models", options.models, options.folders)
        _scan(root / "models", root / "cache")
        tracemalloc.start()
        entries = _scan(root / "models", root / "cache")
        _tell("entries weigh", mib=round(tracemalloc.get_traced_memory()[0] / (1 << 20), 1))
        tracemalloc.stop()
        entries = _scan(root / "models", root / "cache")
        _window(entries)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
