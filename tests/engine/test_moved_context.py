"""What a move between two contexts on the CPU does to the next token's distribution.

The same limit as on a GPU (test_vulkan_moves.py): a thousandth of a nat, and what undisturbed
runs differ.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.memory.context_settings import ContextSettings
from tests.helpers.engines import cpu_placement
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.walked_context import ADDED_KL, Walk, walk

ONE = ContextSettings(n_ctx=2048, n_ubatch=64, n_threads=1)
OTHER = replace(ONE, n_ctx=1024, n_ubatch=32, n_threads=2)
KINDS = ("moe", "sliding", "hybrid")
EACH = 40


def walked(path: Path, kind: str, n_first: int) -> Walk:
    # Every expert is used: two that are ranked nearly alike would change places by rounding.
    write_tiny_model(path, kind, n_expert_used=8)
    tokens = np.random.default_rng(4).integers(4, 200, n_first + 3 * EACH).tolist()
    places = {n: LoadRequest(path, cpu_placement(), one) for n, one in enumerate((ONE, OTHER))}
    return walk(places, (0, 1, 0, 1), tokens, EACH)


@pytest.mark.parametrize("n_first", [30, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_after_each_move_the_next_token_is_as_likely_as_undisturbed(
    tmp_path: Path, kind: str, n_first: int
) -> None:
    found = walked(tmp_path / "tiny.gguf", kind, n_first)
    assert [token.at for token in found.moved_tokens] == [1] * EACH + [0] * EACH + [1] * EACH
    assert [token for token in found.moved_tokens if not token.is_close] == []
    # The window's cache takes 256 cells: after that its cells come back in another order.
    exact = kind != "sliding" or n_first < 256 - 3 * EACH
    assert found.stayed <= (0.0 if exact else ADDED_KL)
    assert not found.lost[0].is_close, "a conversation that lacks a token exceeds the limit"
