"""How fast memory is, measured in the child through ggml."""

from __future__ import annotations

import pytest

from moelauncher.core.errors import Cancelled
from moelauncher.core.helper_python import helper_python
from moelauncher.core.memory.placement import RAM
from moelauncher.engine.bandwidth_probe import measure_bandwidths
from moelauncher.engine.child import Child


def test_main_memory_streams_at_a_likely_speed() -> None:
    child = Child()
    try:
        found = measure_bandwidths(child, [RAM, "NoSuchDevice"])
    finally:
        child.close()
    assert list(found) == [RAM], "what is not there is left out"
    assert 1e8 < found[RAM] < 2e13


def test_a_child_that_dies_leaves_it_unknown() -> None:
    child = Child(command=[helper_python(), "-c", "import os; os._exit(1)"])
    try:
        assert measure_bandwidths(child, [RAM]) == {}
    finally:
        child.close()


def test_cancelled() -> None:
    child = Child()
    try:
        with pytest.raises(Cancelled):
            measure_bandwidths(child, [RAM], cancelled=lambda: True)
    finally:
        child.close()
