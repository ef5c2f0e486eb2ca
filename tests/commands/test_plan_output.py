"""``moelauncher plan`` as its users run it: what it prints, and what it does not import."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.command_line import assert_no_window, moelauncher, run_watched


def test_plan_for_a_pretended_gpu_touches_no_device(tree: Path) -> None:
    ran = run_watched(
        *("plan", tree / "moe.gguf", "--gpu", "RTX4070=12GiB", "--ram", "32GiB"),
        *("--cpu-moe", "1", "--json"),
    )
    assert ran.status == 0, ran.err
    plan = ran.document
    assert plan["placement"]["cpu_moe"] == 1
    assert plan["placement"]["layers"] == [0]
    gpu, ram = plan["devices"]
    assert (gpu["name"], gpu["kind"], gpu["free_bytes"]) == ("RTX4070", "gpu", 12 << 30)
    assert (ram["name"], ram["kind"], ram["free_bytes"]) == ("RAM", "cpu", 32 << 30)
    assert gpu["compute_source"] == "estimate"
    assert plan["fits"] is True
    assert plan["model"]["n_moe_layers"] == 4
    assert "--n-cpu-moe 1" in plan["commands"]["llama_server"]
    assert "llama_cpp" not in ran.modules
    assert_no_window(ran.modules)


def test_a_plan_that_does_not_fit_is_an_answer(tree: Path) -> None:
    ran = moelauncher("plan", tree / "moe.gguf", "--gpu", "TINY=1MiB", "--json")
    assert ran.status == 0, ran.err
    assert ran.document["fits"] is False
    assert ran.document["spare_bytes"] < 0
    assert ran.document["placement"]["cpu_moe"] == ran.document["placement"]["of"] == 4


def test_plan_on_this_machine_asks_llama_cpp_itself(tree: Path) -> None:
    ran = run_watched("plan", tree / "moe.gguf", "--ctx", "512", "--json")
    assert ran.status == 0, ran.err
    assert ran.document["devices"][-1]["compute_source"] == "dry-run"
    # In the child process: bad files end that one, not this one.
    assert "llama_cpp" not in ran.modules


def test_plan_for_people(tree: Path) -> None:
    ran = moelauncher(
        *("plan", tree / "moe.gguf", "--gpu", "A=8GiB", "--gpu", "B=6GiB", "--ctx", "4k"),
    )
    assert ran.status == 0, ran.err
    for part in ("Tiny moe", "A ", "B ", "RAM", "Fits", "llama-server", "trained for 2k tokens"):
        assert part in ran.out, part


def test_more_layers_than_there_are_means_all(tree: Path) -> None:
    ran = moelauncher("plan", tree / "moe.gguf", "--gpu", "A=8GiB", "--cpu-moe", "99", "--json")
    assert ran.document["placement"]["cpu_moe"] == 4
    assert "99 means all" in ran.err


def test_a_dense_model_has_no_experts_to_move(tree: Path) -> None:
    ran = moelauncher(
        *("plan", tree / "deep" / "down" / "dense.gguf", "--gpu", "A=8GiB", "--cpu-moe", "all"),
        "--json",
    )
    assert ran.document["placement"]["of"] == 0
    gpu, ram = ran.document["devices"]
    assert gpu["weights_bytes"] > ram["weights_bytes"]
    assert "no experts to move" in ran.err
