"""Main memory through psutil."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import psutil
import pytest

from moelauncher.meters.ram import RamMeter, _own_bytes, cpu_facts, process_name


def test_reading_makes_sense() -> None:
    reading = RamMeter().read()
    assert 0 < reading.available_bytes <= reading.total_bytes
    assert 0 < reading.own_ram_bytes < reading.total_bytes
    assert reading.cpu_utilisation is None  # there is no time yet to speak of


def test_cpu_load_is_a_fraction_from_the_second_reading_on() -> None:
    meter = RamMeter()
    meter.read()
    load = meter.read().cpu_utilisation
    assert load is not None
    assert 0 <= load <= 1


def test_own_memory_is_seen() -> None:
    meter = RamMeter()
    before = meter.read().own_ram_bytes
    # Pages of its own: an allocation could reuse what earlier tests left to the process.
    with mmap.mmap(-1, 64 << 20) as block:
        block.write(os.urandom(1 << 16) * 1024)
        assert meter.read().own_ram_bytes - before > 0.8 * len(block)


def test_names_of_processes() -> None:
    assert process_name(os.getpid())
    assert process_name(2**31 - 7) == f"pid {2**31 - 7}"


def test_cores() -> None:
    facts = cpu_facts()
    assert facts.logical_cores >= (facts.physical_cores or 1) >= 1


def test_mapped_files_are_not_our_own_where_the_system_counts_them_as_available(
    tmp_path: Path,
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(1 << 20) * 64)
    meter = RamMeter()
    before = meter.read().own_ram_bytes
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0  # every page is touched
        grown = meter.read().own_ram_bytes - before
    if sys.platform.startswith("linux"):
        assert grown < 16 << 20
    else:
        assert grown > 32 << 20


def test_without_the_kernels_word_the_whole_working_set_counts(tmp_path: Path) -> None:
    process = psutil.Process()
    assert _own_bytes(process, tmp_path / "none") == pytest.approx(
        process.memory_info().rss, rel=0.2
    )
    old = tmp_path / "status"  # kernels before 4.5 tell only the sum
    old.write_text("VmRSS:\t 100 kB\n", encoding="ascii")
    assert _own_bytes(process, old) > 1 << 20
    new = tmp_path / "new"
    new.write_text("RssAnon:\t  5 kB\nRssFile:\t 70 kB\nRssShmem:\t 2 kB\n", encoding="ascii")
    assert _own_bytes(process, new) == 7 * 1024
