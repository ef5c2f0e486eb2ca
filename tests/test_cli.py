"""The command line as its users run it: real processes, real models, exit statuses."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from moelauncher import cli
from tests.helpers.command_line import moelauncher, run_watched
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.nvml_stub import build_stub

#: What must not be imported for a command: the window, and whatever draws it.
WINDOW_MODULES = ("PySide6", "shiboken6", "pyqtgraph", "pygments", "moelauncher.gui")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds, some of them broken."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "deep" / "down").mkdir(parents=True)
    write_tiny_model(folder / "moe.gguf", "moe")
    write_tiny_model(folder / "deep" / "down" / "dense.gguf", "dense")
    (folder / "empty.gguf").write_bytes(b"")
    whole = (folder / "moe.gguf").read_bytes()
    (folder / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    (folder / "text.gguf").write_text("no model at all", encoding="utf-8")
    (folder / "folder.gguf").mkdir()
    return folder


@pytest.fixture
def sample_base(session_cache: Path) -> Path:
    """A --basedir in which the sample model is kept from run to run."""
    return session_cache / "command-line"


def assert_no_window(modules: frozenset[str]) -> None:
    loaded = [name for name in modules if name.startswith(WINDOW_MODULES)]
    assert loaded == []


def test_chat_with_the_sample_model(sample_base: Path) -> None:
    ran = run_watched(
        *("chat", "--demo", "--basedir", sample_base, "--temp", "0", "--json"),
        *("-p", "What is the capital of France?"),
    )
    assert ran.status == 0, ran.err
    reply = ran.document
    assert "Paris" in reply["text"]
    assert reply["reasoning"] == ""
    assert reply["finish_reason"] == "stop"
    for rate in ("prompt_tok_s", "tok_s", "ttft_s", "load_s"):
        assert reply[rate] > 0, rate
    assert reply["prompt_tokens"] > 5
    assert reply["completion_tokens"] > 3
    assert reply["placement"]["of"] == 30
    ram = reply["devices"][-1]
    assert ram["name"] == "RAM"
    assert min(ram["weights_bytes"], ram["kv_bytes"], ram["compute_bytes"]) > 0
    assert_no_window(ran.modules)


def test_chat_streams_the_answer_alone_to_stdout(sample_base: Path) -> None:
    ran = moelauncher(
        *("chat", "--demo", "--basedir", sample_base, "--temp", "0", "--max-tokens", "3"),
        *("--ctx", "512", "-p", "What is the capital of France?"),
    )
    assert ran.status == 0, ran.err
    assert ran.out.strip() == "The capital of"
    assert "tok/s" in ran.err
    assert "3 tokens" in ran.err


def test_the_same_seed_draws_the_same_answer(tree: Path) -> None:
    def ask(seed: int) -> str:
        ran = moelauncher(
            *("chat", tree / "moe.gguf", "-p", "a", "--seed", str(seed), "--temp", "1.5"),
            *("--max-tokens", "12", "--ctx", "256", "--json"),
        )
        assert ran.status == 0, ran.err
        assert ran.document["finish_reason"] in ("length", "stop")
        return str(ran.document["text"])

    assert ask(7) == ask(7)
    assert len({ask(7), ask(8), ask(9)}) > 1


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


def test_list_over_a_tree(tree: Path) -> None:
    ran = run_watched("list", tree, "--json")
    assert ran.status == 0, ran.err
    rows = {Path(row["path"]).name: row for row in ran.document}
    assert set(rows) == {
        *("moe.gguf", "dense.gguf", "empty.gguf", "cut.gguf", "text.gguf", "folder.gguf"),
    }
    assert rows["moe.gguf"]["n_expert"] == 8
    assert rows["moe.gguf"]["problem"] is None
    assert rows["dense.gguf"]["n_moe_layers"] == 0
    for name in ("empty.gguf", "cut.gguf", "text.gguf", "folder.gguf"):
        assert rows[name]["problem"], name
    assert_no_window(ran.modules)
    assert "llama_cpp" not in ran.modules


def test_list_for_people(tree: Path) -> None:
    ran = moelauncher("list", tree)
    assert ran.status == 0
    assert "Tiny moe" in ran.out
    assert "4 of 4 layers" in ran.out


def test_list_without_folders_uses_those_of_the_settings(tree: Path, tmp_path: Path) -> None:
    settings = tmp_path / "base" / "config" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[models]\nfolders = ['{tree}']\n", encoding="utf-8")
    ran = moelauncher("--basedir", tmp_path / "base", "list", "--json")
    assert "moe.gguf" in ran.out


def test_doctor_for_programs() -> None:
    ran = run_watched("doctor", "--json")
    assert ran.status == 0, ran.err
    facts = ran.document
    assert facts["llama_cpp_python"]
    assert facts["physical_cores"] >= 1
    assert facts["ram_total_bytes"] > facts["ram_available_bytes"] > 0
    assert any(device["kind"] == "cpu" for device in facts["devices"])
    assert {verdict["level"] for verdict in facts["verdicts"]} <= {"good", "warning", "bad"}
    assert all(verdict["text"] for verdict in facts["verdicts"])
    assert_no_window(ran.modules)


def test_doctor_for_people_shortens_the_home_folder(own_home: Path) -> None:
    ran = moelauncher("doctor")
    assert ran.status == 0
    assert "~" in ran.out
    assert str(own_home) not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nosuch",),
        ("plan",),
        ("plan", "x.gguf", "--demo"),
        ("plan", "x.gguf", "--cpu-moe", "-1"),
        ("plan", "x.gguf", "--cpu-moe", "1.5"),
        ("plan", "x.gguf", "--ctx", "0"),
        ("plan", "x.gguf", "--ctx", "-4096"),
        ("plan", "x.gguf", "--kv", "q5_1"),
        ("plan", "x.gguf", "--ubatch", "0"),
        ("plan", "x.gguf", "--which", "middle"),
        ("plan", "x.gguf", "--gpu", "12GiB"),
        ("plan", "x.gguf", "--gpu", "A=12"),
        ("plan", "x.gguf", "--gpu", "A=12GBB"),
        ("plan", "x.gguf", "--gpu", "A=-1GiB"),
        ("plan", "x.gguf", "--gpu", "A=0"),
        ("plan", "x.gguf", "--gpu", "RAM=12GiB"),
        ("plan", "x.gguf", "--ram", "0"),
        ("plan", "x.gguf", "--ram", "-1GiB"),
        ("plan", "x.gguf", "--tensor-split", "a,b"),
        ("plan", "x.gguf", "--tensor-split", "0,0"),
        ("plan", "x.gguf", "--tensor-split", "nan,1"),
        ("chat", "x.gguf"),
        ("chat", "x.gguf", "-p", "a", "--temp", "-1"),
        ("chat", "x.gguf", "-p", "a", "--max-tokens", "0"),
        ("lisst",),
    ],
)
def test_wrong_arguments_exit_2_in_a_sentence(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    complaint, pointer = printed.err.splitlines()
    assert complaint.startswith("moelauncher")
    assert pointer.endswith("--help.")


@pytest.mark.parametrize("name", ["empty.gguf", "cut.gguf", "text.gguf", "folder.gguf", "no.gguf"])
@pytest.mark.parametrize("command", [("plan",), ("chat", "-p", "a")])
def test_a_bad_file_is_one_sentence(
    tree: Path, name: str, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, str(tree / name), "--json"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--gpu", "A=8GiB", "--tensor-split", "1,2"),
            "The tensor split has 2 parts, but there is 1 GPU. Leave it out: the only GPU",
        ),
        (
            ("--gpu", "A=8GiB", "--gpu", "B=8GiB", "--tensor-split", "1"),
            "The tensor split has 1 part, but there are 2 GPUs. Give one number a GPU",
        ),
        (("--tensor-split", "1,2"), "The tensor split has 2 parts, but there is no GPU."),
        (
            ("--gpu", "A=8GiB", "--gpu", "B=8GiB", "--tensor-split", "1e31,1"),
            "A tensor split needs numbers of 0 or more",
        ),
        (("--gpu", "A=8GiB", "--gpu", "A=8GiB"), "Two GPUs have one name: A, A."),
    ],
)
def test_what_does_not_go_together_is_one_sentence(
    tree: Path,
    arguments: tuple[str, ...],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["plan", str(tree / "moe.gguf"), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith(told)


def test_a_missing_folder_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["list", str(tmp_path / "none"), "--json"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "There is no folder" in printed.err


def test_without_a_display_the_window_says_what_to_do() -> None:
    if sys.platform in ("win32", "darwin"):
        assert cli._has_display()
        return
    ran = run_watched("--demo")
    assert ran.status == 1
    assert "There is no display" in ran.err
    assert_no_window(ran.modules)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for name in ("list", "plan", "bench", "chat", "doctor"):
        assert f"  {name} " in text


@pytest.mark.parametrize("name", sorted(cli._COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0
    assert "--basedir" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_it_all(sample_base: Path, tmp_path: Path) -> None:
    """In the middle of an answer: exit status 130, no complaint, no child left."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "moelauncher", "chat", "--demo", "--basedir", sample_base),
            *("-p", "Count from one to ten thousand.", "--ctx", "8k", "--temp", "1"),
        ],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.read(1)  # the answer has begun
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    _assert_group_gone(process.pid)


def _assert_group_gone(group: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
    raise AssertionError("a process of the command is still there")


def bench(tree: Path, *arguments: str) -> str:
    ran = moelauncher(
        *("bench", tree / "moe.gguf", "--ctx", "256", "--pp", "16", "--tg", "8", "--repeat", "2"),
        *arguments,
    )
    assert ran.status == 0, ran.err
    return ran.out


def test_bench_streams_rows_as_json(tree: Path) -> None:
    rows = [json.loads(line) for line in bench(tree, "--json").splitlines()]
    assert [(row["test"], row["n_tokens"], row["depth"]) for row in rows] == [
        ("pp", 16, 0),
        ("tg", 8, 16),
    ]
    for row in rows:
        assert len(row["repeats"]) == 2
        assert min(row["repeats"]) <= row["median"] <= max(row["repeats"])
        assert row["mad"] >= 0
        assert row["ram_bytes"] > 0
        assert isinstance(row["notes"], list)


def test_bench_as_csv(tree: Path) -> None:
    rows = list(csv.DictReader(bench(tree, "--csv").splitlines()))
    assert [row["test"] for row in rows] == ["pp", "tg"]
    assert all(float(row["median"]) > 0 for row in rows)


def test_bench_as_markdown_and_for_people(tree: Path) -> None:
    lines = [line for line in bench(tree, "--md").splitlines() if line.startswith("|")]
    assert [line.count("|") for line in lines] == [11] * 3
    assert "pp16" in bench(tree)


def test_bench_that_does_not_fit_its_context_says_so(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", str(tree / "moe.gguf"), "--ctx", "256", "--pp", "600"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "does not hold" in printed.err


def test_the_window_gets_its_arguments(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def main(argv: list[str]) -> int:
        given.append(argv)
        return 5

    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setitem(sys.modules, "moelauncher.app", SimpleNamespace(main=main))
    arguments = [str(tree / "moe.gguf"), "--basedir", str(tree)]
    assert cli.main(arguments) == 5
    assert given == [["moelauncher", *arguments]]


def test_without_qt_the_commands_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setitem(sys.modules, "moelauncher.app", None)
    assert cli.main(["--demo"]) == 1
    assert "The window cannot be opened" in capsys.readouterr().err


def test_llama_cpps_own_lines_go_to_the_log_alone(tree: Path, tmp_path: Path) -> None:
    ran = moelauncher(
        *("chat", tree / "moe.gguf", "--basedir", tmp_path, "-p", "a", "--max-tokens", "2"),
        *("--ctx", "256", "--json"),
    )
    assert ran.status == 0
    assert ran.err == ""
    log = (tmp_path / "logs" / "command-line.log").read_text(encoding="utf-8")
    assert "llama.cpp: " in log


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_reader_that_goes_away_is_no_crash(tree: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "moelauncher", "list", tree],
            cwd=Path(__file__).parents[1],
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=100,
        )
    assert done.returncode == 1
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="the stub takes the place of libnvidia-ml")
def test_doctor_says_when_the_build_cannot_use_the_gpu(tmp_path: Path) -> None:
    stub = str(build_stub(tmp_path))
    ran = moelauncher("doctor", LD_LIBRARY_PATH=stub)
    assert "NVIDIA GeForce RTX 4070, 3.0 GiB of 12.0 GiB used, PCIe 4.0 x16" in ran.out
    assert "This build of llama.cpp cannot use the GPU." in ran.out
    verdict = moelauncher("doctor", "--json", LD_LIBRARY_PATH=stub).document
    assert verdict["verdict"] == "bad"
    assert "Install the Vulkan or CUDA build" in verdict["gpu_note"]


def test_a_dense_model_has_no_experts_to_move(tree: Path) -> None:
    ran = moelauncher(
        *("plan", tree / "deep" / "down" / "dense.gguf", "--gpu", "A=8GiB", "--cpu-moe", "all"),
        "--json",
    )
    assert ran.document["placement"]["of"] == 0
    gpu, ram = ran.document["devices"]
    assert gpu["weights_bytes"] > ram["weights_bytes"]
    assert "no experts to move" in ran.err


def test_one_placement_is_measured_once(tree: Path) -> None:
    if any(gpu["kind"] == "gpu" for gpu in moelauncher("doctor", "--json").document["devices"]):
        return  # with a GPU these are three placements
    assert len(bench(tree, "--cpu-moe", "0,2,all", "--json").splitlines()) == 2
