"""What to try after a crash: clearly more in RAM than before, or a smaller context.

In: the plan in view, and where the model stood when the program ended. Out: choices. Pure.
"""

from __future__ import annotations

import math
from dataclasses import replace

from moelauncher.core.memory.launch_plan import LaunchChoices, LaunchPlan

#: So much of the way to the end, and so many layers at least: a single one may change nothing.
_SHARE = 4
_LEAST_LAYERS = 2
_LEAST_CTX = 1024


def safer_choices(
    plan: LaunchPlan, cpu_moe: int | None, n_gpu_layers: int | None
) -> LaunchChoices | None:
    """``plan``'s choices with less on the GPU than at the crash; None where nothing is left.

    ``cpu_moe`` and ``n_gpu_layers`` are where it stood then, None where that is not known.
    """
    choices, slider = plan.choices, plan.slider
    if slider.dense:
        before = choices.n_gpu_layers if n_gpu_layers is None else n_gpu_layers
        if before:
            step = max(_LEAST_LAYERS, math.ceil(slider.gpu_layers / _SHARE))
            layers = max(0, before - step)
            return replace(choices, n_gpu_layers=min(layers, choices.n_gpu_layers or layers))
    else:
        before = choices.cpu_moe if cpu_moe is None else cpu_moe
        if before < slider.last:
            step = max(_LEAST_LAYERS, math.ceil(slider.last / _SHARE))
            stop = min(slider.last, before + step)
            return replace(choices, cpu_moe=max(stop, choices.cpu_moe))
    n_ctx = choices.context.n_ctx // 2
    if n_ctx < _LEAST_CTX:
        return None
    return replace(choices, context=replace(choices.context, n_ctx=n_ctx))
