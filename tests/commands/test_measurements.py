"""``moelauncher bench`` stores what it measures; ``measurements`` shows, exports, imports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher import cli
from moelauncher.core.paths import app_paths
from moelauncher.core.speed.measurement import BENCH, LLAMA_BENCH
from moelauncher.core.speed.measurement_store import MeasurementStore
from tests.core.speed.test_llama_bench_json import row
from tests.helpers.gguf_files import write_tiny_model


@pytest.fixture
def base(tmp_path: Path) -> list[str]:
    model = write_tiny_model(tmp_path / "moe.gguf", "moe")
    return [str(model), "--basedir", str(tmp_path / "base")]


def bench(base: list[str], *more: str) -> int:
    lengths = ["--ctx", "256", "--pp", "8", "--tg", "8", "--repeat", "2", "--threads", "1"]
    return cli.main(["bench", *base, *lengths, *more])


def stored(tmp_path: Path) -> list:
    store = MeasurementStore(app_paths(tmp_path / "base").measurements_file)
    found = store.everything()
    store.close()
    return found


def test_bench_keeps_every_repeat(
    base: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(base, "--json", "--layer-split") == 0
    prompt, decode = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    kept = stored(tmp_path)
    assert [one.tok_s for one in kept] == decode["repeats"]
    assert [one.prompt_tok_s for one in kept] == prompt["repeats"]
    assert {one.source for one in kept} == {BENCH}
    one = kept[0]
    assert (one.threads, one.setting.n_ctx, one.n_prompt, one.depth) == (1, 256, 8, 8)
    assert one.machine.build and one.conditions is not None


def test_a_forum_table_and_every_form(
    base: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(base, "--md") == 0
    printed = capsys.readouterr().out
    assert printed.count("llama-bench -m moe.gguf") == 2
    for form, words in (
        (["--md"], printed),
        (["--csv"], "flash_attention"),
        (["--json"], '"source": "bench"'),
        ([], "tg8 @ d8"),
    ):
        assert cli.main(["measurements", *base, *form]) == 0
        assert words in capsys.readouterr().out
    assert str(tmp_path) not in printed


def test_llama_bench_output_is_imported_once(
    base: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([row(model_filename="moe.gguf")]), encoding="utf-8")
    for n in (3, 0):
        assert cli.main(["measurements", *base, "--import", str(path)]) == 0
        captured = capsys.readouterr()
        assert f"{n} repeats" in captured.err
        assert "llama-bench" in captured.out
    assert [one.source for one in stored(tmp_path)] == [LLAMA_BENCH] * 3


@pytest.mark.parametrize("text", ["", "{}", '[{"n_prompt": 5}]'])
def test_what_cannot_be_imported_is_one_sentence(
    base: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["measurements", *base, "--import", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no output of llama-bench" in captured.err


def test_nothing_measured_yet(base: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["measurements", *base]) == 0
    assert "Nothing is measured" in capsys.readouterr().out
    assert cli.main(["measurements", *base, "--json"]) == 0
    assert capsys.readouterr().out == ""
