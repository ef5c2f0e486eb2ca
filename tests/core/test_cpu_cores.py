"""Physical cores from Linux's description of its CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.cpu_cores import cores_of_topology, default_threads, logical_cores


def describe(folder: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n", encoding="utf-8")
    return folder


def test_hyper_threads_share_a_core(tmp_path: Path) -> None:
    folder = describe(tmp_path, {0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5"})
    assert cores_of_topology(folder, {0, 1, 4, 5}) == 2


def test_only_allowed_cpus_count(tmp_path: Path) -> None:
    folder = describe(tmp_path, {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"})
    assert cores_of_topology(folder, {0, 1}) == 1


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    assert cores_of_topology(tmp_path, {0}) is None


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (8, 7)])
def test_one_core_is_left_to_the_window(cores: int, threads: int) -> None:
    assert default_threads(cores) == threads


def test_every_machine_has_a_core() -> None:
    assert logical_cores() >= 1
