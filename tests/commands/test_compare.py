"""``moelauncher compare`` on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher import cli
from tests.helpers.gguf_files import write_tiny_model


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    model = write_tiny_model(tmp_path / "moe.gguf", "moe")
    where = ["--basedir", str(tmp_path / "base"), "--ctx", "512", "--threads", "1"]
    return ["compare", str(model), *where, "--tokens", "4"]


def test_a_document_with_the_verdict_and_every_answer(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*arguments, "--with-kv", "q4_0", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    assert document["level"] in ("same", "noise", "slight", "differs")
    assert document["text"]
    assert document["noise"]["of"] == document["change"]["of"] == len(document["answers"])
    answer = document["answers"][0]
    assert len(answer["divergences"]) == len(answer["tokens"]) <= 4


def test_for_people(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*arguments, "--with-ubatch", "64"]) == 0
    printed = capsys.readouterr().out
    assert "mean KL" in printed
    assert "For scale" in printed


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ([], 2, "nothing to compare with"),
        (["--with-kv", "f64"], 2, "invalid choice"),
        (["--with-threads", "0"], 2, "number of threads"),
        (["--with-kv", "q8_0", "--with-flash-attention", "off"], 1, "could not be compared"),
    ],
)
def test_bad_input(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    wrong: list[str],
    status: int,
    words: str,
) -> None:
    try:
        ended = cli.main([*arguments, *wrong])
    except SystemExit as exit_:
        ended = exit_.code
    assert ended == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
