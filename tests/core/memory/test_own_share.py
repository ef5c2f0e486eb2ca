"""Our own share of the GPU, and what is free once it is given back."""

from __future__ import annotations

from moelauncher.core.machine import GpuReading, MachineSnapshot
from moelauncher.core.memory.own_share import OwnShare, free_for_reload, own_share


def gpu(used: int | None, total: int = 100, own: int | None = None) -> GpuReading:
    return GpuReading(
        "RTX",
        "NVML",
        total_bytes=total,
        used_bytes=used,
        free_bytes=None if used is None else total - used,
        pci_address="0000:01:00.0",
        own_bytes=own,
    )


def snapshot(card: GpuReading, rss: int = 10) -> MachineSnapshot:
    return MachineSnapshot(0.0, 1000, 500, rss, gpus=(card,))


def test_used_now_minus_used_before() -> None:
    share = own_share(snapshot(gpu(20), rss=10), snapshot(gpu(70), rss=45))
    assert share == OwnShare({"0000:01:00.0": 50}, 35)
    assert free_for_reload(gpu(70), share) == 80


def test_the_driver_knows_better() -> None:
    share = own_share(snapshot(gpu(20)), snapshot(gpu(70, own=42)))
    assert share.gpu_bytes == {"0000:01:00.0": 42}


def test_nothing_loaded_is_no_share() -> None:
    assert own_share(None, snapshot(gpu(70, own=42))) == OwnShare()


def test_unknown_stays_unknown() -> None:
    share = own_share(snapshot(gpu(None)), snapshot(gpu(70)))
    assert share.gpu_bytes == {}
    assert free_for_reload(gpu(None), share) is None


def test_never_negative_and_never_more_than_the_card() -> None:
    share = own_share(snapshot(gpu(70), rss=50), snapshot(gpu(20), rss=10))
    assert share == OwnShare({"0000:01:00.0": 0}, 0)
    assert free_for_reload(gpu(10), OwnShare({"0000:01:00.0": 60})) == 100


def test_pinned_memory_counts_though_the_system_does_not_call_it_ours() -> None:
    share = own_share(snapshot(gpu(20), rss=10), snapshot(gpu(70), rss=15), ram_buffer_bytes=300)
    assert share.ram_bytes == 300


def test_a_context_from_an_earlier_load_stays_and_is_no_part_of_the_share() -> None:
    share = own_share(snapshot(gpu(20, own=5)), snapshot(gpu(70, own=55)))
    assert share.gpu_bytes == {"0000:01:00.0": 50}
