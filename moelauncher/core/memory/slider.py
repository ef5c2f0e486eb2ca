"""The slider as a number line: its stops, and what it says at each. Knows no window.

In: :class:`ModelFacts`, the GPUs. Out: stops and sentences. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moelauncher.core.memory.placement import PlacementDevice, expert_stops
from moelauncher.core.translate import tr

if TYPE_CHECKING:
    from moelauncher.core.files.model_facts import ModelFacts


@dataclass(frozen=True)
class ExpertSlider:
    """The stops are 0..``last``: so many expert layers on the CPU.

    ``disabled_reason`` is a sentence where the slider can do nothing, else "". ``dense``
    says that a "layers on the GPU" control takes its place, with stops 0..``gpu_layers``.
    """

    last: int
    disabled_reason: str
    dense: bool
    gpu_layers: int  # blocks and the output layer: everything

    def clamp(self, stop: int) -> int:
        """The nearest stop there is."""
        return min(max(stop, 0), self.last)

    def label(self, stop: int) -> str:
        """The sentence under the slider at ``stop``."""
        if self.disabled_reason:
            return self.disabled_reason
        stop = self.clamp(stop)
        if stop == 0:
            return tr("Everything is on the GPU: all expert weights, attention and KV cache.")
        if stop == self.last:
            return tr(
                "Expert weights of all {last} expert layers stay in RAM."
                " Attention, shared weights and KV cache stay on the GPU."
            ).format(last=self.last)
        return tr(
            "Expert weights of {stop} of {last} layers stay in RAM."
            " Attention, shared weights and KV cache stay on the GPU."
        ).format(stop=stop, last=self.last)

    def gpu_layers_label(self, n_gpu_layers: int) -> str:
        """The sentence under a dense model's "layers on the GPU" control."""
        count = min(max(n_gpu_layers, 0), self.gpu_layers)
        if count == self.gpu_layers:
            return tr("All layers and the KV cache are on the GPU.")
        if count == 0:
            return tr("All layers are in RAM, computed by the CPU.")
        return tr(
            "{count} of {all} layers are on the GPU with their KV cache;"
            " the others stay in RAM, computed by the CPU."
        ).format(count=count, all=self.gpu_layers)


def expert_slider(facts: ModelFacts, gpus: Sequence[PlacementDevice]) -> ExpertSlider:
    """The number line of one model on one machine."""
    last = len(expert_stops(facts))
    dense = not any(layer.expert_bytes for layer in facts.layers)
    if facts.unplaceable_experts:
        reason = tr(
            "This old file keeps each expert in a tensor of its own, which llama.cpp cannot"
            " place apart: convert it again, or choose the layers on the GPU."
        )
    elif last == 0:
        reason = tr("A dense model, without experts to move: choose layers.")
    elif not gpus:
        reason = tr("There is no GPU to place experts on: everything stays in RAM.")
    else:
        reason = ""
    return ExpertSlider(
        last=last,
        disabled_reason=reason,
        dense=dense or facts.unplaceable_experts,
        gpu_layers=facts.n_layer_all + 1,
    )
