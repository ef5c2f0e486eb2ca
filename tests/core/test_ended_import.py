"""An import ends where it is told to, and nothing else does."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moelauncher.core.ended_import import import_until
from moelauncher.core.errors import Cancelled


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package whose modules import each other in a row: first, second, third."""
    folder = tmp_path / "large_package"
    folder.mkdir()
    modules = {"__init__": "first", "first": "second", "second": "third", "third": "."}
    for name, following in modules.items():
        text = "" if following == "." else f"from . import {following}\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "large_package"
    for name in [name for name in sys.modules if name.partition(".")[0] == "large_package"]:
        del sys.modules[name]


def test_it_ends_before_the_next_module(package: str) -> None:
    before = list(sys.meta_path)
    with (
        pytest.raises(Cancelled),
        import_until(package, lambda: f"{package}.second" in sys.modules),
    ):
        importlib.import_module(package)
    assert f"{package}.third" not in sys.modules
    assert package not in sys.modules
    assert sys.meta_path == before
    # What was half there is not taken for whole later.
    assert importlib.import_module(package).first.second.third


def test_nobody_told_to_end_is_the_usual_import(package: str) -> None:
    with import_until(package, lambda: False):
        assert importlib.import_module(package).first.second.third


def test_other_packages_and_other_threads_go_on(package: str) -> None:
    found: list[object] = []
    with import_until("some_other_package", lambda: True):
        importlib.import_module(f"{package}.third")
    with import_until(package, lambda: True):
        other = threading.Thread(target=lambda: found.append(importlib.import_module(package)))
        other.start()
        other.join()
    assert found == [sys.modules[package]]
