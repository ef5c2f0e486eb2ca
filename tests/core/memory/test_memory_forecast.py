"""What a device takes, keeps free, and whether that fits."""

from __future__ import annotations

import pytest

from moelauncher.core.memory.placement import RAM
from tests.helpers.memory_values import GIB, device, forecast


def test_every_kind_of_use_counts_once() -> None:
    kinds = ("dense", "expert", "kv", "recurrent", "compute", "driver")
    sizes = {f"{kind}_bytes": 10**place for place, kind in enumerate(kinds)}
    card = device(**sizes, leave_free_bytes=10**6, free_bytes=10**7, lent_bytes=10**8)
    assert card.weights_bytes == 11
    assert card.used_bytes == 111_111
    assert card.spare_bytes == 10**7 - 111_111 - 10**6 - 10**8


@pytest.mark.parametrize(("free", "fits"), [(9 * GIB, True), (9 * GIB - 1, False), (None, True)])
def test_it_fits_to_the_last_byte_and_where_nobody_knows(free: int | None, fits: bool) -> None:
    assert device(free_bytes=free).fits is fits


def test_devices_are_found_by_name() -> None:
    made = forecast(device("CUDA0"), device("CUDA1"))
    assert [gpu.name for gpu in made.gpus] == ["CUDA0", "CUDA1"]
    assert made.device("CUDA1") is made.gpus[1]
    assert made.device(RAM) is made.ram
    with pytest.raises(KeyError, match="CUDA2"):
        made.device("CUDA2")
