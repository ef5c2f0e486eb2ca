"""The child process: answers, crashes, hangs, cancels, and its end with the parent."""

import os
import subprocess
import sys
import threading

import psutil
import pytest

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.helper_python import helper_python
from moelauncher.engine import child as child_module
from moelauncher.engine.child import Child, ChildUnavailableError, child_command

# The real loop, with operations that do what llama.cpp would never do on request.
SCRIPTED = [
    helper_python(),
    "-c",
    """
import os, subprocess, sys, threading
from moelauncher.core.errors import LauncherError
from moelauncher.engine import child_main, child_work

def assertion(parameters):
    os.write(2, b"llama.cpp/src/x.cpp:7: GGML_ASSERT(n_head > 0) failed\\n")
    os.abort()

def chatter(parameters):
    print("from Python")
    os.write(1, b'{"id": 1, "result": "from C"}\\n')
    os.write(2, b"x" * 79 + b"\\n" + b"y" * 1_000_000 + b"\\n")
    return "the answer"

def refuse(parameters):
    raise LauncherError("What happened.", "What to do.", "What an expert needs.")

def last_words(text):
    os.write(2, text.encode())
    os._exit(3)

def leave_heir(parameters):
    # It inherits standard error and lives until it is killed.
    command = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid

child_work.OPERATIONS = {
    "leave heir": leave_heir,
    "last words": last_words,
    "echo": lambda parameters: parameters,
    "pid": lambda parameters: os.getpid(),
    "abort": lambda parameters: os.abort(),
    "assertion": assertion,
    "exit": lambda parameters: os._exit(3),
    "hang": lambda parameters: threading.Event().wait(),
    "chatter": chatter,
    "refuse": refuse,
    "bug": lambda parameters: 1 // 0,
}
child_main.main()
""",
]


@pytest.fixture
def child():
    child = Child(command=SCRIPTED)
    yield child
    child.close()


def test_it_answers_with_the_parameters_it_was_given(child):
    parameters = {"path": "C:\\Modèles\\模型.gguf", "layers": [1, 2], "ratio": 0.5, "none": None}
    assert child.request("echo", parameters) == parameters


def test_one_process_serves_many_requests(child):
    assert child.pid is None
    first = child.request("pid")
    assert child.request("pid") == first == child.pid


def test_what_libraries_print_is_no_answer(child):
    assert child.request("chatter") == "the answer"
    assert child.request("echo", {"still": "here"}) == {"still": "here"}


def test_a_refusal_arrives_with_hint_and_details(child):
    with pytest.raises(LauncherError) as error:
        child.request("refuse")
    assert (error.value.message, error.value.hint, error.value.details) == (
        "What happened.",
        "What to do.",
        "What an expert needs.",
    )


def test_an_unforeseen_error_is_a_sentence_and_the_child_lives_on(child):
    pid = child.request("pid")
    with pytest.raises(LauncherError, match="division"):
        child.request("bug")
    assert child.request("pid") == pid


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("warning: missing pre-tokenizer\nerror: tensor 'x' not found\n", "tensor 'x' not found."),
        ("terminate called after an instance of 'E'\n  what():  no device\n", "no device."),
        ("warning: something is missing\n", "it crashed (exit status 0x3)."),
        ("error: first\n/src/a-b.cu:12: fatal error\n", "fatal error (a-b.cu:12)."),
    ],
)
def test_last_words_are_the_reason(child, written, reason):
    with pytest.raises(LauncherError) as error:
        child.request("last words", written)
    assert error.value.message == f"llama.cpp refused this file: {reason}"
    # What the start of the backends said may come late.
    assert error.value.details.endswith(written.strip("\n"))


def test_a_failed_assertion_is_the_reason(child):
    with pytest.raises(LauncherError) as error:
        child.request("assertion")
    assert error.value.message == (
        "llama.cpp refused this file: GGML_ASSERT(n_head > 0) failed (x.cpp:7)."
    )
    assert child.request("echo", {"next": 1}) == {"next": 1}


@pytest.mark.parametrize("operation", ["abort", "exit"])
def test_a_crash_without_a_word_is_a_sentence_too(child, operation):
    before = child.request("pid")
    with pytest.raises(LauncherError, match=r"llama\.cpp refused this file: it crashed"):
        child.request(operation)
    assert child.request("pid") != before


def test_a_hanging_request_ends_when_its_time_is_over(child):
    before = child.request("pid")
    with pytest.raises(ChildUnavailableError, match=r"did not answer within 0\.2 s"):
        child.request("hang", timeout_s=0.2)
    assert not psutil.pid_exists(before)
    assert child.request("pid") != before


def test_a_cancelled_request_is_killed(child):
    before = child.request("pid")
    with pytest.raises(Cancelled):
        child.request("hang", cancelled=lambda: True)
    assert not psutil.pid_exists(before)
    assert child.request("echo", {"next": 1}) == {"next": 1}


def test_a_child_that_died_while_idle_is_replaced_unnoticed(child):
    before = psutil.Process(child.request("pid"))
    before.kill()
    wait_until_dead(before)
    assert child.request("pid") != before.pid


def wait_until_dead(process):
    """Leaves a zombie one, for its parent to see."""
    if sys.platform == "win32":
        process.wait()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_others_wait_for_their_turn(child):
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(child.request("echo", {"n": n})))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["n"] for answer in answers) == list(range(8))


def test_who_waits_can_be_cancelled(child):
    child.request("pid")
    inside = threading.Event()
    done = threading.Event()

    def occupied():
        inside.set()
        return done.is_set()

    def occupy():
        with pytest.raises(Cancelled):
            child.request("hang", cancelled=occupied)

    holder = threading.Thread(target=occupy)
    holder.start()
    assert inside.wait(240)
    with pytest.raises(Cancelled):
        child.request("echo", cancelled=lambda: True)
    done.set()
    holder.join()


def test_close_ends_the_process_and_the_running_request():
    child = Child(command=SCRIPTED)
    pid = child.request("pid")
    inside = threading.Event()
    ended = []

    def hang():
        with pytest.raises(Cancelled):
            child.request("hang", cancelled=lambda: inside.set() or False)
        ended.append(True)

    thread = threading.Thread(target=hang)
    thread.start()
    assert inside.wait(240)
    child.close()
    thread.join()
    assert ended == [True]
    assert not psutil.pid_exists(pid)
    child.close()
    with pytest.raises(Cancelled):
        child.request("pid")


def test_close_does_not_wait_for_who_inherited_its_pipes(monkeypatch):
    monkeypatch.setattr(child_module, "_LAST_WORDS_S", 0.1)
    child = Child(command=SCRIPTED)
    heir = psutil.Process(child.request("leave heir"))
    readers = [thread for thread in threading.enumerate() if thread.name == "child-stderr"]
    child.close()
    assert heir.is_running()
    heir.kill()
    for reader in readers:
        reader.join()


PARENT = """
import sys
from moelauncher.engine.child import Child
from tests.engine.test_child import SCRIPTED
child = Child(command=SCRIPTED)
print(child.request("pid"), flush=True)
child.request("hang", timeout_s=600)
"""


def test_it_ends_when_its_parent_is_killed_in_the_middle_of_a_request():
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        served = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    served.wait(timeout=240)
    assert not served.is_running()


def test_a_program_that_is_not_there_is_a_sentence(tmp_path):
    child = Child(command=[str(tmp_path / "none")])
    with pytest.raises(ChildUnavailableError, match="could not be started"):
        child.request("echo")
    child.close()


def test_a_crash_at_the_start_is_a_sentence_with_its_reason():
    child = Child(command=[helper_python(), "-c", "raise SystemExit('error: no driver')"])
    with pytest.raises(ChildUnavailableError, match=r"crashed while it started: no driver\."):
        child.request("echo")
    child.close()


def test_a_child_that_never_gets_ready_is_given_up():
    hang = [helper_python(), "-c", "import sys; sys.stdin.read()"]
    child = Child(command=hang, start_timeout_s=0.2)
    with pytest.raises(ChildUnavailableError, match="did not start within"):
        child.request("echo")
    child.close()


def test_a_frozen_program_starts_itself(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert child_command() == [sys.executable, "--child"]


def test_a_child_with_nothing_to_do_gives_its_memory_back(child):
    first = child.request("pid")
    assert child.pid == first
    child.sleep(idle_s=3600)
    assert child.pid == first
    child.request("pid", counts=False)
    child.sleep()
    assert child.pid is None
    assert not psutil.pid_exists(first)
    assert child.request("pid") != first


def test_a_busy_child_does_not_sleep(child):
    child.request("pid")
    cancel = threading.Event()

    def hang():
        with pytest.raises(Cancelled):
            child.request("hang", cancelled=cancel.is_set)

    thread = threading.Thread(target=hang)
    thread.start()
    while not child._turn.locked():
        pass
    child.sleep()
    assert child.pid is not None
    cancel.set()
    thread.join()
    child.sleep()  # there is none any more
    assert child.pid is None
