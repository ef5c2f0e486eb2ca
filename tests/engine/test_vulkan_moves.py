"""A conversation goes on while its model moves between a GPU and the CPU, all the way and back.

How far a moved conversation may be from one that never moved, in nats of the next token's
distribution: a thousandth, and what undisturbed runs differ (:func:`walk` says which).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moelauncher.core.library.sample_model import build_sample_model
from tests.helpers.vulkan_build import require_vulkan_build, vulkan_environment
from tests.helpers.walked_context import ADDED_KL, MovedToken

pytestmark = [pytest.mark.vulkan, pytest.mark.timeout(900)]

#: The slider's way: everything in RAM, one or more layers of experts on the GPU, all of them.
WAYS = {
    "sample": (30, 8, 0, 30),
    "moe": (4, 1, 0, 4),
    "sliding": (4, 1, 0, 4),
    "hybrid": (3, 1, 0, 3),
}

SYNTHETIC = [kind for kind in WAYS if kind != "sample"]
N_TOKENS = 13


@pytest.fixture(scope="module")
def answer(
    request: pytest.FixtureRequest, session_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the probe told of one kind of model."""
    kind: str = request.param
    environment = vulkan_environment(require_vulkan_build(), session_cache / "shaders")
    if kind == "sample":
        model = build_sample_model(session_cache)
    else:
        model = tmp_path_factory.mktemp(kind) / "tiny.gguf"
    finished = subprocess.run(
        [sys.executable, "-m", "tests.helpers.move_probe", kind, str(model)],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=840,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-4000:]
    return {"kind": kind, "way": list(WAYS[kind][1:]), **json.loads(finished.stdout)}


every_kind = pytest.mark.parametrize("answer", WAYS, indirect=True, scope="module")
synthetic = pytest.mark.parametrize("answer", SYNTHETIC, indirect=True, scope="module")


@every_kind
def test_a_reply_goes_on_and_its_history_is_whole(answer: dict[str, Any]) -> None:
    reply = answer["moved"]
    assert reply["counts"] == list(range(1, N_TOKENS + 1)), "no token lost or doubled"
    assert [move["stop"] for move in reply["moves"]] == answer["way"]
    for move in reply["moves"]:
        assert (move["failed"], move["how"]) == (False, "restored")
        # The newest token is drawn and not yet evaluated.
        assert move["held"] == reply["prompt_tokens"] + move["drawn"] - 1
    assert reply["context_used"] == reply["prompt_tokens"] + N_TOKENS - 1
    assert answer["kind"] != "sample" or "Paris" in reply["text"]


@synthetic
def test_at_rest_the_next_turn_reads_only_what_is_new(answer: dict[str, Any]) -> None:
    rest = answer["at_rest"]
    held = rest["first"]
    assert [(move["stop"], move["how"], move["held"]) for move in rest["moves"]] == [
        (stop, "restored", held) for stop in answer["way"]
    ]
    assert rest["cached"] == held >= 5
    assert rest["read"] == 1


@synthetic
def test_a_place_that_cannot_be_had_changes_no_token(answer: dict[str, Any]) -> None:
    refused = answer["refused"]
    (move,) = refused["moves"]
    assert (move["failed"], move["stop"], move["how"]) == (True, answer["way"][-1], "restored")
    assert 0 < move["drawn"] < N_TOKENS
    assert refused["text"] == answer["undisturbed"]["text"]
    assert refused["counts"] == list(range(1, N_TOKENS + 1))


@synthetic
def test_a_move_to_itself_changes_no_token(answer: dict[str, Any]) -> None:
    assert len(answer["itself"]["moves"]) == 1
    assert answer["itself"]["text"] == answer["undisturbed"]["text"]


@every_kind
def test_weights_loaded_anew_at_the_same_place_change_no_bit(answer: dict[str, Any]) -> None:
    # Of a sliding window only the cells inside it come back, to other places: sums are rounded
    # anew there.
    assert answer["stayed"] <= (ADDED_KL if answer["kind"] == "sliding" else 0.0)


@every_kind
def test_after_each_move_the_next_token_is_as_likely_as_undisturbed(answer: dict[str, Any]) -> None:
    tokens = [MovedToken(**token) for token in answer["moved_tokens"]]
    assert [token.at for token in tokens] == [stop for stop in answer["way"] for _ in range(4)]
    assert [token for token in tokens if not token.is_close] == []


@every_kind
def test_the_limit_is_one_that_a_lost_token_breaks(answer: dict[str, Any]) -> None:
    lost = [MovedToken(**token) for token in answer["lost"]]
    assert not lost[0].is_close
    assert sum(token.moved for token in lost) > ADDED_KL * len(lost)
