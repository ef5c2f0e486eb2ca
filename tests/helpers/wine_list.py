"""Under Wine: tests that fail for Wine's own reasons, each with its reason, and those only.

A plugin of pytest, loaded by ``packaging/dev.py test --wine``. The listed tests run all the same:
one that passes is told as XPASS, so that the list can become shorter. What would end or hang
the whole run is not run.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

LIST = Path(__file__).resolve().parents[2] / "packaging" / "wine" / "known_failures.toml"


def listed(text: str) -> dict[str, tuple[str, bool]]:
    """Test (or the start of its name) to its reason and whether it is run, from the list's text."""
    return {
        test: (group["reason"], group.get("run", True))
        for group in tomllib.loads(text)["group"]
        for test in group["tests"]
    }


def entry_of(node_id: str, entries: dict[str, tuple[str, bool]]) -> tuple[str, bool] | None:
    """What the list says of a test: by its whole name, its name without parameters, or its file."""
    names = (node_id, node_id.partition("[")[0], node_id.partition("::")[0])
    return next((entries[name] for name in names if name in entries), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    entries = listed(LIST.read_text(encoding="utf-8"))
    for item in items:
        entry = entry_of(item.nodeid, entries)
        if entry is not None:
            reason, runs = entry
            item.add_marker(pytest.mark.xfail(reason=f"Wine: {reason}", run=runs, strict=False))
