"""Every word of the memory gauge: names, lessons and tooltips of its bars. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject

from moelauncher.core.machine import GpuHolder
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.units import format_bytes, format_gib
from moelauncher.gui.memory.memory_bars import Bar, Segment

#: So many programs are named in a tooltip.
MOST_HOLDERS = 5


class GaugeTexts(QObject):
    """Texts for bars and their segments, and for the legend."""

    def kind_name(self, kind: str) -> str:
        """The short name of a segment, as the legend has it."""
        return {
            "others": self.tr("others"),
            "lent": self.tr("GPU's share"),
            "driver": self.tr("driver"),
            "dense": self.tr("dense"),
            "experts": self.tr("experts"),
            "kv": self.tr("KV"),
            "recurrent": self.tr("state"),
            "compute": self.tr("compute"),
            "over": self.tr("does not fit"),
        }[kind]

    def kind_lesson(self, kind: str) -> str:
        """What a segment is, for somebody who meets it the first time."""
        return {
            "others": self.tr("Other programs and the desktop."),
            "lent": self.tr(
                "What the integrated GPU takes: its memory is part of main memory. "
                "The bar above says what for; it is counted once."
            ),
            "driver": self.tr(
                "The driver's own share for every program that computes on this GPU."
            ),
            "dense": self.tr(
                "Dense weights: attention, norms, routers, shared experts, embeddings. "
                "All of them are read for every token, so they belong on the GPU."
            ),
            "experts": self.tr(
                "Routed experts: for each token only a few of them are read, "
                "which is why they may stay in main memory."
            ),
            "kv": self.tr(
                "KV cache: what attention remembers of every token. It grows with the context "
                "size; q8_0 halves it."
            ),
            "recurrent": self.tr(
                "Recurrent state: the fixed-size memory of recurrent layers. "
                "It does not grow with the context."
            ),
            "compute": self.tr(
                "Compute buffers: room for intermediate results. A smaller prompt batch (under "
                "More) shrinks them."
            ),
            "over": self.tr("What does not fit below the mark."),
        }[kind]

    def _source_name(self, source: str, bar: Bar) -> str:
        if source == "measured" and bar.meter:
            return self.tr("measured by {meter}").format(meter=bar.meter)
        return {
            "measured": self.tr("not measured"),
            "header": self.tr("from the model file's header"),
            "dry-run": self.tr("from llama.cpp's own dry run"),
            "estimate": self.tr("estimate"),
        }[source]

    def title(self, bar: Bar) -> str:
        """What stands over a bar, on the left."""
        if not bar.is_gpu:
            return self.tr("RAM")
        if bar.imagined:
            return self.tr("GPU · none in use: what one would hold")
        name = bar.label or bar.name
        if bar.shares_ram:
            return self.tr("GPU · {name} · part of RAM").format(name=name)
        return self.tr("GPU · {name}").format(name=name)

    def figures(self, bar: Bar) -> str:
        """What stands over a bar, on the right."""
        if bar.total_bytes is None:
            return format_bytes(bar.then_bytes)
        return self.tr("{used} of {total} GiB").format(
            used=format_gib(bar.then_bytes), total=format_gib(bar.total_bytes)
        )

    def sentence(self, bar: Bar) -> str:
        """A whole bar in words."""
        parts = [
            f"{self.kind_name(segment.kind)} {format_bytes(segment.then_bytes)}"
            for segment in bar.segments
            if segment.then_bytes
        ]
        if bar.over_bytes:
            parts.append(f"{self.kind_name('over')} {format_bytes(bar.over_bytes)}")
        return f"{self.title(bar)}: {self.figures(bar)}. {', '.join(parts)}"

    def segment_tip(self, bar: Bar, segment: Segment) -> str:
        """What one segment is, how large, and who says so."""
        lines = [
            f"{self.kind_name(segment.kind)}: {format_bytes(segment.then_bytes)} "
            f"({self._source_name(segment.source, bar)})"
        ]
        if segment.kind != "others" and segment.now_bytes != segment.then_bytes:
            now = format_bytes(segment.now_bytes) if segment.now_bytes else self.tr("nothing")
            lines.append(self.tr("Loaded now: {size}").format(size=now))
        lines.append(self.kind_lesson(segment.kind))
        if segment.kind == "others" and bar.holders:
            lines.append(self._holders(bar.holders))
        return "\n".join(lines)

    def _holders(self, holders: Sequence[GpuHolder]) -> str:
        """Who holds the memory: "firefox 412 MiB, steam 88 MiB and 3 more"."""
        told = []
        for holder in holders[:MOST_HOLDERS]:
            size = "" if holder.used_bytes is None else f" {format_bytes(holder.used_bytes)}"
            told.append(display_name(holder.name) + size)
        text = ", ".join(told)
        more = len(holders) - len(told)
        return self.tr("{text} and {n} more").format(text=text, n=more) if more else text

    def margin_tip(self, leave_free_bytes: int) -> str:
        """What the mark is that can be dragged."""
        return self.tr(
            "Kept free: {size}. Drag to change it, or use the arrow keys. "
            "The rest is for other programs that start later."
        ).format(size=format_bytes(leave_free_bytes))

    def free_tip(self, bar: Bar) -> str:
        """What is behind the last segment."""
        if bar.total_bytes is None:
            return self.tr("The size of this memory is not known.")
        free = max(0, bar.total_bytes - bar.then_bytes)
        return self.tr("Free: {size}").format(size=format_bytes(free))
