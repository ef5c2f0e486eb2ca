"""Sizes as people write them, and every number as people read it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelauncher.core.errors import LauncherError
from moelauncher.core.units import (
    GIB,
    KIB,
    MIB,
    format_bytes,
    format_duration,
    format_gib,
    format_parameters,
    format_rate,
    format_share,
    format_tokens,
    parse_size,
    parse_tokens,
)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("12GiB", 12 * GIB),
        ("11900MiB", 11900 * MIB),
        ("12GB", 12_000_000_000),
        ("12884901888", 12 * GIB),
        ("1.5 GiB", 3 * GIB // 2),
        (" 8g ", 8 * GIB),
        ("2048KiB", 2 * MIB),
        ("1TiB", 1024 * GIB),
    ],
)
def test_sizes_that_are_understood(text: str, n_bytes: int) -> None:
    assert parse_size(text) == n_bytes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("0", "above 0"),
        ("0GiB", "above 0"),
        ("12", "Write 12GiB."),
        ("12B", "too small"),
        ("-1GiB", "negative"),
        ("-5", "negative"),
        ("12GBB", "no unit “GBB”"),
        ("GiB", "is no size"),
        ("1e9", "is no size"),
        ("nan", "is no size"),
        ("1,5GiB", "is no size"),
        ("1.5", "needs a unit"),
        ("99999999999999TB", "more memory than any machine"),
    ],
)
def test_sizes_that_are_refused_in_one_clear_sentence(text: str, said: str) -> None:
    with pytest.raises(LauncherError) as refusal:
        parse_size(text)
    assert said in refusal.value.sentence
    assert refusal.value.hint.startswith("Write ") or said in refusal.value.message
    assert "\n" not in refusal.value.sentence


def test_nothing_is_a_size_where_it_makes_sense() -> None:
    assert parse_size("0", smallest_bytes=0) == 0


@given(st.text(max_size=20))
def test_no_text_crashes_the_reader(text: str) -> None:
    try:
        n_bytes = parse_size(text)
    except LauncherError:
        return
    assert n_bytes >= MIB


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (None, "–"),
        (0, "0 MiB"),
        (700, "1 KiB"),
        (400 * KIB, "400 KiB"),
        (512 * MIB, "512 MiB"),
        (GIB - 1, "1.0 GiB"),
        (GIB + GIB // 4, "1.2 GiB"),
        (-3 * GIB, "-3.0 GiB"),
    ],
)
def test_bytes(n_bytes: int | None, text: str) -> None:
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("n_tokens", "text"),
    [
        (None, "–"),
        (412, "412"),
        (1200, "1.2k"),
        (2000, "2k"),
        (4096, "4k"),
        (32768, "32k"),
        (131072, "128k"),
        (262144, "256k"),
        (123456, "123k"),
    ],
)
def test_token_counts(n_tokens: int | None, text: str) -> None:
    assert format_tokens(n_tokens) == text


def test_rates_durations_parameters_and_shares() -> None:
    assert [format_rate(rate) for rate in (None, 0.84, 34.61, 99.96, 310.4)] == [
        "–",
        "0.8 tok/s",
        "34.6 tok/s",
        "100 tok/s",
        "310 tok/s",
    ]
    seconds = (None, 0.04, 0.4, 4.2, 89, 180, 3540, 3590, 3900)
    assert [format_duration(each) for each in seconds] == [
        "–",
        "0.0 s",
        "0.4 s",
        "4 s",
        "89 s",
        "3 min",
        "59 min",
        "1 h",
        "1 h 5 min",
    ]
    counts = (None, 512, 270_000_000, 999_900_000, 34_660_000_000, 1_200_000_000_000)
    assert [format_parameters(count) for count in counts] == [
        "–",
        "512",
        "270M",
        "1.0B",
        "34.7B",
        "1.2T",
    ]
    assert format_share(0.615) == "62 %"
    assert format_share(None) == "–"


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(10.44 * GIB, "10.4"), (0.634 * GIB, "0.63"), (GIB, "1.0"), (0, "0.00")]
)
def test_gib_without_the_unit(n_bytes: float, text: str) -> None:
    assert format_gib(n_bytes) == text


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [
        ("32768", 32768),
        ("32,768", 32768),
        ("32.768", 32768),
        ("32\u202f768", 32768),
        (" 32 K ", 32768),
        ("0", None),
        ("", None),
        ("k", None),
        ("-5", None),
        ("\uff11\uff12", None),
        ("1M", 1 << 20),
        ("12m", 12 << 20),
        ("12g", None),
        ("4096.5", None),
        ("1,000,000", 1_000_000),
        ("1,00", None),
        ("1e3", None),
    ],
)
def test_tokens_as_people_type_them(text: str, n_tokens: int | None) -> None:
    assert parse_tokens(text) == n_tokens


@given(st.text())
def test_any_text_is_tokens_or_nothing(text: str) -> None:
    n_tokens = parse_tokens(text)
    assert n_tokens is None or n_tokens > 0
