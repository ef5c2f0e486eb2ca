"""NVML through pynvml's real ctypes calls, against a library that the test compiles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.nvml_stub import build_stub, read_through_nvml

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the stub takes the place of libnvidia-ml.so.1"
)

GIB = 1 << 30


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("nvml"))


def test_two_cards_with_everything(stub: Path) -> None:
    (cards,), _ = read_through_nvml(stub, 1)
    first, second = cards
    assert first["name"] == "NVIDIA GeForce RTX 4070"
    assert second["name"] == "NVIDIA GeForce RTX 3060"
    assert first["source"] == "NVML"
    assert (first["total_bytes"], first["used_bytes"], first["free_bytes"]) == (
        12 * GIB,
        3 * GIB,
        9 * GIB,
    )
    assert first["pci_address"] == "0000:01:00.0"
    assert second["pci_address"] == "0000:02:00.0"
    assert first["temperature_c"] == 61
    assert first["utilisation"] == 0.62
    assert first["pcie"] == "4.0 x16"
    assert first["driver"] == "570.1"
    assert (first["drives_display"], second["drives_display"]) == (True, False)
    assert first["throttle_reasons"] == ["power limit", "too hot"]  # idle is no throttle


def test_holders_are_named_once_and_without_us(stub: Path) -> None:
    (cards,), _ = read_through_nvml(stub, 1)
    # 4242 computes and draws: it stands in both of NVML's lists.
    assert cards[0]["holders"] == [{"pid": 4242, "name": "program 4242", "used_bytes": GIB}]
    assert cards[0]["own_bytes"] == 2 * GIB


def test_not_supported_is_unknown_never_zero(stub: Path) -> None:
    (cards,), _ = read_through_nvml(stub, 1, STUB_NVML_BARE="1")
    card = cards[0]
    assert card["used_bytes"] == 3 * GIB
    for name in ("temperature_c", "utilisation", "pcie", "pci_address", "driver", "own_bytes"):
        assert card[name] is None, name
    assert card["drives_display"] is None
    assert card["holders"] == []


def test_no_driver_is_no_gpu_and_no_error(tmp_path: Path) -> None:
    answers, _ = read_through_nvml(tmp_path, 2)
    assert answers == [[], []]


def test_a_driver_without_its_kernel_module_is_no_gpu(stub: Path) -> None:
    answers, errors = read_through_nvml(stub, 2, STUB_NVML_INIT="9")
    assert answers == [[], []]
    assert "shutdown" not in errors


def test_a_replaced_driver_is_a_sentence(stub: Path) -> None:
    answers, _ = read_through_nvml(stub, 1, STUB_NVML_INIT="18")
    assert answers[0]["message"] == "The NVIDIA driver stopped answering."
    assert "restart" in answers[0]["hint"]


def test_failing_in_the_middle_is_told_and_tried_again(stub: Path) -> None:
    answers, errors = read_through_nvml(stub, 4, STUB_NVML_LOST_AFTER="4")
    assert [isinstance(answer, list) for answer in answers] == [True, True, False, False]
    assert answers[2]["message"] == "The NVIDIA driver stopped answering."
    # Closed by the first failure, opened anew for the last reading, closed by its failure.
    assert errors.count("shutdown 0") == 2


def test_one_lost_card_does_not_hide_the_other(stub: Path) -> None:
    (cards,), _ = read_through_nvml(stub, 1, STUB_NVML_LOST_CARD="0")
    assert [card["name"] for card in cards] == ["NVIDIA GeForce RTX 3060"]


def test_closed_once(stub: Path) -> None:
    _, errors = read_through_nvml(stub, 3)
    assert errors.count("shutdown 0") == 1
