"""The suite's run under Wine: its list of known failures, and how its results are told."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import wine_tests

from tests.helpers import wine_list

ROOT = Path(__file__).resolve().parents[2]


def test_every_listed_test_exists_and_has_a_reason() -> None:
    entries = wine_list.listed(wine_list.LIST.read_text(encoding="utf-8"))
    assert entries
    for name, (reason, _) in entries.items():
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not test or test.partition("[")[0] in names, name
        assert len(reason.split()) > 3, name


@pytest.mark.parametrize("listed", ["tests/a.py", "tests/a.py::test_b", "tests/a.py::test_b[x]"])
def test_a_test_is_listed_by_its_file_its_name_or_its_parameters(listed: str) -> None:
    entry = ("no such thing", False)
    assert wine_list.entry_of("tests/a.py::test_b[x]", {listed: entry}) == entry
    assert wine_list.entry_of("tests/a.py::test_bc[x]", {"tests/a.py::test_b": entry}) is None


def test_all_rooms_are_run(tmp_path: Path) -> None:
    names = ("core/test_a.py", "core/files/test_b.py", "gui/chats/test_c.py", "helpers/tools.py")
    for name in (*names, "test_walls.py"):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).touch()
    assert wine_tests.rooms(tmp_path / "tests") == [
        "tests/core",
        "tests/gui",
        "tests/test_walls.py",
    ]


def test_the_last_line_is_what_counts() -> None:
    text = "1 failed in 3s\n== 12 passed, 1 skipped, 2 xfailed, 1 error in 61.20s (0:01:01) ==\nX\n"
    counts = wine_tests.counts_in(text)
    assert counts == {"passed": 12, "skipped": 1, "xfailed": 2, "error": 1}
    assert wine_tests.counts_in("Windows fatal exception: access violation") == {}


def test_named_rooms_run_apart_and_narrower_choices_together() -> None:
    assert ["tests/core"] in wine_tests.parts_of([])
    assert wine_tests.parts_of(["tests/gui", "tests/core"]) == [["tests/gui"], ["tests/core"]]
    for narrow in (["tests/core", "-k", "settings"], ["tests/test_cli.py::test_x", "tests/gui"]):
        assert wine_tests.parts_of(narrow) == [narrow]


def test_results_are_told_by_room_and_in_sum() -> None:
    results = {
        "tests/core": wine_tests.Result(0, {"passed": 1000, "xfailed": 2}, 61.0),
        "tests/gui": wine_tests.Result(1, {"passed": 9, "skipped": 3, "failed": 1}, 5.0),
        "tests/hub": wine_tests.Result(5, {}, 2.0),
    }
    assert wine_tests.report(results) == [
        "                 time  passed  known failures  skipped  FAILED",
        "tests/core  1 min 1 s    1000               2        0       0",
        "tests/gui         5 s       9               0        3       1  pytest's exit code 1",
        "tests/hub         2 s       ?               ?        ?       ?  pytest's exit code 5",
        "all         1 min 8 s    1009               2        3       1",
    ]


def test_without_a_failure_there_is_no_column_of_failures() -> None:
    head, *_ = wine_tests.report({"tests/core": wine_tests.Result(0, {"passed": 1}, 1.0)})
    assert head.split() == ["time", "passed", "known", "failures", "skipped"]
