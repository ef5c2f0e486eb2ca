"""Two settings' answers, from real children on tiny models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.library.model_files import load_facts
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.memory.place_model import place
from moelauncher.core.speed.same_answers import (
    AnswerSetting,
    AnswersJob,
    AnswersProgress,
    Comparison,
    SameAnswers,
)
from moelauncher.engine.answers import run_answers
from moelauncher.engine.child_answers import divergence
from tests.helpers.gguf_files import write_tiny_model

CONTEXT = ContextSettings(n_ctx=512, n_threads=1)
PROMPTS = ("Once upon a time", "2 + 2 =")


def setting(path: Path, **context: object) -> AnswerSetting:
    facts = load_facts(path)
    changed = replace(CONTEXT, **context)  # type: ignore[arg-type]
    return AnswerSetting(LoadRequest(path, place(facts, (), cpu_moe=0), changed))


def run(job: AnswersJob) -> tuple[SameAnswers, list[AnswersProgress]]:
    *told, found = run_answers(job)
    assert isinstance(found, SameAnswers)
    assert all(isinstance(one, AnswersProgress) for one in told)
    return found, told  # type: ignore[return-value]


def job_of(reference: AnswerSetting, change: AnswerSetting, noise: AnswerSetting | None = None):
    return AnswersJob(reference, change, noise, PROMPTS, n_tokens=6)


@pytest.mark.parametrize("shape", ["moe", "sliding", "hybrid"])
def test_the_same_setting_gives_the_same_answers_and_another_kv_type_others(
    tmp_path: Path, shape: str
) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", shape)
    here = setting(path)
    found, told = run(job_of(here, setting(path, kv_type="q4_0"), noise=here))
    assert isinstance(found.noise, Comparison)
    assert found.noise.n_same == len(PROMPTS)
    assert found.noise.worst < 1e-9
    assert found.change.mean > found.noise.mean
    for answer in found.change.answers:
        assert len(answer.divergences) == len(answer.tokens)
        at = answer.parted_at
        if at is None:
            assert answer.tokens == answer.other
        else:
            assert answer.tokens[:at] == answer.other[:at]
            assert at < len(answer.tokens)
    fractions = [one.fraction for one in told]
    assert fractions == sorted(fractions) and fractions[-1] < 1
    assert [one.step for one in told][:: len(PROMPTS) + 1] == ["reference", "noise", "change"]


def test_flash_attention_can_be_switched(tmp_path: Path) -> None:
    here = setting(write_tiny_model(tmp_path / "model.gguf", "moe"))
    found, _ = run(
        job_of(replace(here, flash_attention=True), replace(here, flash_attention=False))
    )
    assert found.noise is None
    assert found.change.mean < 0.05


def test_a_setting_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", "moe")
    # A quantised V cache needs flash attention.
    change = replace(setting(path, kv_type="q8_0"), flash_attention=False)
    with pytest.raises(LauncherError, match="could not be compared"):
        run(job_of(setting(path), change))


def test_a_small_kv_type_without_flash_attention_is_said(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", "moe")
    change = replace(setting(path, kv_type="q8_0"), flash_attention=False)
    with pytest.raises(LauncherError, match="q8_0 needs flash attention, which is off") as caught:
        run(job_of(setting(path), change))
    assert "KV type f16" in caught.value.hint


def test_a_context_too_small_is_said(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", "moe")
    long = AnswersJob(setting(path), setting(path), None, ("word " * 800,), 6)
    with pytest.raises(LauncherError, match="does not hold"):
        run(long)


def test_a_cancel_ends_it_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    here = setting(write_tiny_model(tmp_path / "model.gguf", "moe"))
    events = run_answers(job_of(here, here), cancelled=lambda: True)
    assert isinstance(next(events), AnswersProgress)
    with pytest.raises(Cancelled):
        list(events)
    assert list(scratch.iterdir()) == []


def test_divergence_is_that_of_the_distributions() -> None:
    first, other = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    expected = float((first * np.log(first / other)).sum())
    found = divergence(np.log(first).astype(np.float32), np.log(other))
    assert found == pytest.approx(expected, rel=1e-6)
    assert divergence(np.log(first).astype(np.float32), np.log(first)) < 1e-12
