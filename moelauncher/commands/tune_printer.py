"""What ``moelauncher tune`` prints and keeps: rows as they come, at last the decision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from moelauncher.commands.kept_measurements import MeasurementKeeper
from moelauncher.commands.terminal import ProgressLine, note, out, out_json
from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.bench_row import BenchRow, spread_note
from moelauncher.core.speed.levers import levers_document
from moelauncher.core.speed.measurement import LAYERS, Measurement
from moelauncher.core.speed.measurement_store import MeasurementStore
from moelauncher.core.speed.remarks import each_once
from moelauncher.core.speed.split_search import LAYER_SPLIT, SplitSearch
from moelauncher.core.speed.tune_events import Decided, Failed, Measured, Visiting, setting_of
from moelauncher.core.speed.tune_text import decision_text
from moelauncher.core.translate import tr
from moelauncher.core.units import format_bytes, format_duration


class TunePrinter:
    """Rows and the decision, as text or JSON, and into the store."""

    def __init__(
        self, search: SplitSearch, store: MeasurementStore | None, *, as_json: bool
    ) -> None:
        self._json = as_json
        self._search = search
        self._plan = search.plan
        self._keeper = MeasurementKeeper(store)
        self._by_stop: dict[int, list[Measurement]] = {}
        self.progress = ProgressLine(tr("Tuning"), quiet=as_json)
        self.best: int | None = None
        self.cancelled = False

    def take(self, event: object) -> None:
        """One event of the sweep."""
        if isinstance(event, Visiting):
            self.progress.show(event.n_done / event.n_most)
        elif isinstance(event, Measured):
            self._keeper.keep(event.measurement)
            self._measured(event)
        elif isinstance(event, Failed):
            self._failed(event)
        elif isinstance(event, Decided):
            self._decided(event)

    def _measured(self, event: Measured) -> None:
        runs = self._by_stop.setdefault(event.stop, [])
        runs.append(event.measurement)
        for row in _rows(runs):
            document = row.to_json() | {
                "levers": self._levers(event.stop),
                "disturbed": [one.disturbance for one in runs if one.disturbance],
                **self._division(event.stop),
            }
            if self._json:
                out_json(document)
        if not self._json:
            self.progress.end()
            one = event.measurement
            rate = f"{one.tok_s:.2f}" if one.tok_s is not None else "–"
            prompt = f"{one.prompt_tok_s:.1f}" if one.prompt_tok_s is not None else "–"
            line = (
                f"{self._label(event.stop):>4}  {rate:>8} tok/s  {prompt:>8} pp"
                f"  {format_bytes(one.vram_bytes):>10}"
            )
            remark = one.disturbance or " ".join(one.notes)
            out("  ".join(filter(None, (line, self._search.difference(event.stop), remark))))

    def _failed(self, event: Failed) -> None:
        if self._json:
            out_json(
                {
                    "cpu_moe": self._search.setting(event.stop).placement.cpu_moe,
                    "levers": self._levers(event.stop),
                    **self._division(event.stop),
                    "failed": event.error.message,
                    "hint": event.error.hint,
                }
            )
        else:
            self.progress.end()
            levers = self._search.difference(event.stop)
            line = f"{self._label(event.stop):>4}  {event.error.message}"
            out("  ".join(filter(None, (line, levers))))

    def _division(self, number: int) -> dict[str, object]:
        """What tells the layer split's rows from those of stop 0."""
        if number != LAYER_SPLIT:
            return {}
        n_layers = self._search.setting(number).placement.n_gpu_layers
        return {"division": LAYERS, "n_gpu_layers": n_layers}

    def _levers(self, number: int) -> dict[str, object]:
        return dict(levers_document(self._search.setting(number).choices))

    def _label(self, number: int) -> int:
        placement = self._search.setting(number).placement
        return placement.cpu_moe if placement.of else placement.n_gpu_layers

    def _decided(self, event: Decided) -> None:
        decision, plan = event.decision, self._plan
        self.best = decision.best
        self.cancelled = event.why == "cancelled" and decision.best is None
        spare = None if decision.best is None else plan.stops[decision.best].forecast.spare_bytes
        text = decision_text(
            decision,
            spare_bytes=spare,
            present=plan.present,
            one_place=plan.one_place,
            label=self._label,
        )
        document: dict[str, Any] = {
            "decision": {
                "best": None if decision.best is None else self._label(decision.best),
                "equal": [self._label(stop) for stop in decision.equal],
                "present": self._label(plan.present),
                "rates": {str(self._label(s)): rate for s, rate in decision.rates.items()},
                "failed": [self._label(stop) for stop in decision.failed],
                "noise": decision.noise,
                "decided": decision.decided,
                "ended": event.why or "decided",
                "elapsed_s": event.elapsed_s,
                "text": text,
                "notes": [event.busy_note] if event.busy_note else [],
            }
        }
        split_text = self._search.split_text()
        if self._search.split_rate is not None:
            document["decision"]["layer_split"] = {
                **self._division(LAYER_SPLIT),
                "tok_s": self._search.split_rate,
                "text": split_text,
            }
        if decision.setting is not None:
            request = self._search.request(decision.setting)
            document["decision"]["setting"] = asdict(setting_of(request))
            document["decision"]["levers"] = self._levers(decision.setting)
            self._remember(decision.setting)
        if self._json:
            out_json(document)
            return
        self.progress.end()
        out(text)
        if split_text:
            out(split_text)
        if event.busy_note:
            out(event.busy_note)
        ended = {
            "": tr("Decided in {time}."),
            "budget": tr("The time was used up after {time}; more may change the result."),
            "cancelled": tr("Stopped after {time}; what was measured is kept."),
        }[event.why]
        out(ended.format(time=format_duration(event.elapsed_s)))

    def _remember(self, number: int) -> None:
        runs = [one for group in self._by_stop.values() for one in group]
        store = self._keeper.store
        if store is None or not runs:
            return
        try:
            store.remember_choice(
                runs[0].model,
                runs[0].machine.name,
                setting_of(self._search.request(number)),
                time.time(),
            )
        except LauncherError as error:
            note(error.sentence)


def _rows(runs: list[Measurement]) -> Iterator[BenchRow]:
    """What ``bench`` would print of these repeats: all of them, disturbed ones left out of the
    median."""
    last = runs[-1]
    for test, n_tokens, depth, rates in (
        ("pp", last.n_prompt, 0, [one.prompt_tok_s for one in runs]),
        ("tg", last.n_generated, last.depth, [one.tok_s for one in runs]),
    ):
        known = [(rate, one) for rate, one in zip(rates, runs, strict=True) if rate]
        if not n_tokens or not known:
            continue
        row = BenchRow(
            last.setting.cpu_moe,
            test,
            n_tokens,
            depth,
            tuple(rate for rate, _ in known),
            last.vram_bytes,
            last.ram_bytes,
            left_out=tuple(place for place, (_, one) in enumerate(known) if one.disturbance),
        )
        notes = each_once((text for one in runs for text in one.notes), len(runs))
        if spread := spread_note(row.counted):
            notes.append(spread)
        yield replace(row, notes=tuple(notes))
