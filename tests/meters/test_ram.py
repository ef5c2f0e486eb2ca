"""Main memory through psutil."""

from __future__ import annotations

import os

from moelauncher.meters.ram import RamMeter, cpu_facts, process_name


def test_reading_makes_sense() -> None:
    reading = RamMeter().read()
    assert 0 < reading.available_bytes <= reading.total_bytes
    assert 0 < reading.own_rss_bytes < reading.total_bytes
    assert reading.cpu_utilisation is None  # there is no time yet to speak of


def test_cpu_load_is_a_fraction_from_the_second_reading_on() -> None:
    meter = RamMeter()
    meter.read()
    load = meter.read().cpu_utilisation
    assert load is not None
    assert 0 <= load <= 1


def test_own_memory_is_seen() -> None:
    meter = RamMeter()
    before = meter.read().own_rss_bytes
    block = bytearray(os.urandom(1 << 16) * 1024)  # 64 MiB, written
    assert meter.read().own_rss_bytes - before > 0.8 * len(block)


def test_names_of_processes() -> None:
    assert process_name(os.getpid())
    assert process_name(2**31 - 7) == f"pid {2**31 - 7}"


def test_cores() -> None:
    facts = cpu_facts()
    assert facts.logical_cores >= (facts.physical_cores or 1) >= 1
