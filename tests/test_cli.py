"""The command line as its users run it: real processes, real models, exit statuses."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from moelauncher import cli
from tests.helpers.command_line import (
    assert_no_window,
    run_watched,
    write_model_folder,
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of several kinds, some of them broken."""
    return write_model_folder(tmp_path_factory.mktemp("models"))


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
