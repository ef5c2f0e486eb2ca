"""The walls as a running program sees them; import-linter checks the same in the source."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import moelauncher

PACKAGE = Path(moelauncher.__file__).parent

QT = ("PySide6", "shiboken6", "pyqtgraph")
FOREIGN_TO_CORE = (*QT, "pygments", "llama_cpp", "pynvml", "psutil")

_IMPORT_ALL = """
import importlib, json, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
    importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def modules_after_importing(name: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL, name],
        capture_output=True,
        text=True,
        check=False,
        cwd=PACKAGE.parent,
    )
    assert answer.returncode == 0, answer.stderr
    return set(json.loads(answer.stdout))


@pytest.mark.parametrize(
    ("module", "foreign"),
    [
        ("moelauncher.core", FOREIGN_TO_CORE),
        ("moelauncher.engine", QT),
        ("moelauncher.meters", QT),
        ("moelauncher.cli", QT),
        ("moelauncher.commands", QT),
    ],
)
def test_room_loads_without_what_is_not_its_own(module, foreign):
    assert modules_after_importing(module).isdisjoint(foreign)


def imported_packages(source: Path) -> set[str]:
    """The top-level names that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(
    "source", sorted((PACKAGE / "core").rglob("*.py")), ids=lambda path: path.name
)
def test_core_imports_only_what_it_may(source):
    allowed = {*sys.stdlib_module_names, "moelauncher", "numpy", "platformdirs", "tomli_w"}
    assert imported_packages(source) - (allowed - {"ctypes"}) == set()
