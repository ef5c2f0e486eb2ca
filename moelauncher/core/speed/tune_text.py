"""What a sweep found, in words. Pure; any thread."""

from __future__ import annotations

from collections.abc import Callable

from moelauncher.core.speed.sweep import SweepDecision
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_rate

#: So much faster is worth a word; a single visit may be off by some per cent.
_PROMPT_CONFLICT = 1.15


def decision_text(
    decision: SweepDecision,
    *,
    spare_bytes: int | None = None,
    present: int | None = None,
    one_place: bool = False,
    label: Callable[[int], int] = int,
) -> str:
    """ "24 to 28 are equal within the noise: take 28, it leaves 1.1 GiB free."

    ``spare_bytes`` is what the chosen stop leaves free, ``present`` the user's own stop;
    ``one_place`` says that all stops mean the same here (no GPU). ``label`` is how people call a
    stop.
    """
    if decision.best is None:
        return tr("Nothing could be measured.")
    text = _stop_text(decision, spare_bytes, present, one_place, label)
    prompts = "" if one_place else _prompt_text(decision, label)
    return " ".join(filter(None, (text, prompts, *decision.lever_notes)))


def _prompt_text(decision: SweepDecision, label: Callable[[int], int]) -> str:
    """Where prompts are read faster than at the stop that writes fastest; "" for nowhere."""
    rates, best = decision.prompt_rates, decision.best
    if best is None or best not in rates:
        return ""
    quick = max(rates, key=lambda stop: rates[stop])
    if rates[quick] < rates[best] * _PROMPT_CONFLICT:
        return ""
    return tr("Prompts are read faster at {n}: {rate} against {here}.").format(
        n=label(quick), rate=format_rate(rates[quick]), here=format_rate(rates[best])
    )


def _stop_text(
    decision: SweepDecision,
    spare_bytes: int | None,
    present: int | None,
    one_place: bool,
    label: Callable[[int], int],
) -> str:
    assert decision.best is not None
    best = decision.best
    rate = decision.rates[best]
    if one_place:
        return tr("Without a GPU all stops are the same: {rate}.").format(rate=format_rate(rate))
    if len(decision.rates) == 1:
        return tr("Only {best} was measured: {rate}.").format(
            best=label(best), rate=format_rate(rate)
        )
    if decision.is_tie:
        ends = [label(stop) for stop in decision.equal]
        text = tr("{low} to {high} are equal within the noise: take {best}").format(
            low=min(ends), high=max(ends), best=label(best)
        )
        if spare_bytes is not None and spare_bytes > 0:
            text += tr(", it leaves {size} free").format(size=format_bytes(spare_bytes))
        text += tr(" ({rate}).").format(rate=format_rate(rate))
    else:
        text = tr("{best} is the fastest: {rate}.").format(best=label(best), rate=format_rate(rate))
    if present is None or present not in decision.rates or present == best:
        return text
    if present in decision.equal:
        return text + " " + tr("Your setting ({n}) is as fast.").format(n=label(present))
    gain = rate / decision.rates[present] - 1
    if gain > 0:
        text += " " + tr("That is {gain:.0f} % more than your {n} ({rate}).").format(
            gain=100 * gain, n=label(present), rate=format_rate(decision.rates[present])
        )
    return text
