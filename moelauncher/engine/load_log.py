"""What llama.cpp says while it loads, as values.

In: its log lines with their levels. Out: :class:`LoadLog`. Pure: knows the lines, not the
library; any thread. Lines are those of the pinned release and of the years before it
(function names in front have changed, the words behind them less so).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moelauncher.core.engine_protocol import BufferReport

_MIB = 1 << 20
_NUMBER = r"(\d+(?:\.\d+)?)"

_BUFFER = re.compile(
    rf"(\S+)\s+(model|KV|RS|compute|output|DSV4 .+ state) buffer size\s*=\s*{_NUMBER} MiB"
)
_BUFFER_KINDS = {
    "model": "weights",
    "KV": "kv",
    "RS": "recurrent",
    "compute": "compute",
    "output": "output",
}
_CACHE = re.compile(rf"size\s*=\s*{_NUMBER} MiB \(\s*\d+ cells,\s*(\d+) layers")
_LAYER_DEVICE = re.compile(r"layer\s+(\d+): dev = (\S+)")
_ASSIGNED = re.compile(r"layer\s+(\d+) assigned to device (\S+?),")
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_N_CTX = re.compile(r"\bn_ctx\s+= (\d+)")
_FLASH = re.compile(r"\bflash_attn\s+= (enabled|disabled|0|1)\s*$")
_FLASH_RESOLVED = re.compile(
    r"Flash Attention (enabled|not supported)|Flash Attention was auto, set to (enabled|disabled)"
)

#: Lines that carry the file's own texts (names, templates), which may read like any other.
_FROM_THE_FILE = re.compile(r"llama_model_loader: - kv |print_info:|load: control")
#: What the placement does on purpose, and llama.cpp remarks on each time.
_EXPECTED_WARNINGS = ("tensor overrides to CPU are used with mmap enabled",)


@dataclass(frozen=True)
class CacheReport:
    """One cache of a context: its size, and the device of each layer that it serves.

    ``kind`` is "kv" or "recurrent". A model with sliding windows has two KV caches. In a
    load without allocation this is the only true size: the buffers read 0 there.
    """

    kind: str
    n_bytes: int
    n_layers: int
    layer_devices: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadLog:
    """A whole load, or only a context, as far as the lines told. Unknown is None."""

    buffers: tuple[BufferReport, ...] = ()
    caches: tuple[CacheReport, ...] = ()
    #: Block index (n_layer_all for the output) to device name, for the weights.
    layer_devices: Mapping[int, str] = field(default_factory=dict)
    offloaded: tuple[int, int] | None = None
    n_ctx: int | None = None
    flash_attention: bool | None = None
    warnings: tuple[str, ...] = ()

    def bytes_of(self, kind: str) -> dict[str, int]:
        """Bytes per device name of one kind of buffer."""
        sizes: dict[str, int] = {}
        for buffer in self.buffers:
            if buffer.kind == kind:
                sizes[buffer.device] = sizes.get(buffer.device, 0) + buffer.n_bytes
        return sizes


def is_telling(level: str, text: str) -> bool:
    """Whether a line may matter here: most debug lines (one a tensor or node) do not."""
    if level == "debug":
        return _LAYER_DEVICE.search(text) is not None
    return _FROM_THE_FILE.match(text) is None


def parse_load_log(lines: Iterable[tuple[str, str]]) -> LoadLog:
    """Read ``(level, text)`` lines of one load; levels are "debug" to "error".

    Where several contexts were made, the caches and compute buffers are the last one's.
    """
    reader = _Reader()
    for level, text in lines:
        reader.read(level, text.rstrip())
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self._weights: list[BufferReport] = []
        self._layer_devices: dict[int, str] = {}
        self._offloaded: tuple[int, int] | None = None
        self._warnings: list[str] = []
        self._start_context()

    def _start_context(self) -> None:
        self._context_buffers: list[BufferReport] = []
        self._compute: dict[str, BufferReport] = {}
        self._caches: list[CacheReport] = []
        self._cache_layers: dict[int, str] = {}
        self._n_ctx: int | None = None
        self._flash: bool | None = None

    def result(self) -> LoadLog:
        return LoadLog(
            buffers=(*self._weights, *self._context_buffers, *self._compute.values()),
            caches=tuple(self._caches),
            layer_devices=self._layer_devices,
            offloaded=self._offloaded,
            n_ctx=self._n_ctx,
            flash_attention=self._flash,
            warnings=tuple(dict.fromkeys(self._warnings)),
        )

    def read(self, level: str, text: str) -> None:
        if _FROM_THE_FILE.match(text):
            return
        if level == "warning" and not any(words in text for words in _EXPECTED_WARNINGS):
            self._warnings.append(text)
        if "constructing llama_context" in text:
            self._start_context()
        elif match := _BUFFER.search(text):
            self._buffer(match[1], match[2], _bytes(match[3]))
        elif match := _LAYER_DEVICE.search(text):
            self._cache_layers[int(match[1])] = match[2]
        elif match := _CACHE.search(text):
            self._cache(text, match)
        elif match := _ASSIGNED.search(text):
            self._layer_devices[int(match[1])] = match[2]
        elif match := _OFFLOADED.search(text):
            self._offloaded = (int(match[1]), int(match[2]))
        elif match := _N_CTX.search(text):
            self._n_ctx = int(match[1])
        elif match := _FLASH.search(text):
            self._flash = match[1] in ("enabled", "1")
        elif match := _FLASH_RESOLVED.search(text):
            self._flash = "enabled" in (match[1], match[2])

    def _buffer(self, device: str, words: str, n_bytes: int) -> None:
        report = BufferReport(device, _BUFFER_KINDS.get(words, "recurrent"), n_bytes)
        if report.kind == "weights":
            self._weights.append(report)
        elif report.kind == "compute":
            # Reserved anew when an operation turns out not to be supported: the last counts.
            self._compute[device] = report
        else:
            self._context_buffers.append(report)

    def _cache(self, text: str, match: re.Match[str]) -> None:
        kind = "recurrent" if "recurrent" in text else "kv"
        size = _bytes(match[1])
        layers = self._cache_layers
        self._caches.append(CacheReport(kind, size, int(match[2]), layers))
        self._cache_layers = {}


def _bytes(mebibytes: str) -> int:
    return round(float(mebibytes) * _MIB)
