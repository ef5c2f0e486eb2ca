"""Runs a sweep: a child process for each visit, so that what goes wrong costs one row.

In: a :class:`Search` (which stop next), the load request of each stop, the budget. Out: a
stream of events, the last one the decision. Blocks; not for the window's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.speed.conditions import (
    Conditions,
    ConditionWatch,
    condition_notes,
    disturbance,
)
from moelauncher.core.speed.measurement import Measurement
from moelauncher.core.speed.sweep import Search
from moelauncher.core.speed.tune_events import (
    Decided,
    Failed,
    Measured,
    TuneCase,
    TuneEvent,
    TuneJob,
    Visiting,
    setting_of,
)
from moelauncher.core.translate import tr
from moelauncher.engine.child import Child
from moelauncher.engine.placement_json import load_request_to_json

#: A visit without an answer for so long is given up, whatever budget is left.
VISIT_LIMIT_S = 900.0
#: So much longer than the longest visit before: it hangs, and costs its row only.
_HANGING = 10.0
_LEAST_LIMIT_S = 60.0
#: What the first visit of all may take, however small the budget, and of what is left at most:
#: a GPU's kernels may have to be compiled first.
_COMPILING_S, _COMPILING_SHARE = 90.0, 0.75
#: A further visit is begun only if the usual one would end within the budget.
_SAFETY = 1.2
#: What a visit takes of the time of the first one, which fills caches and compiles.
_AFTER_FIRST = 1 / 3
#: The time limit of a visit is a round figure, and may fall so short of the budget's end.
_END_S = 0.1


def run_tune(
    job: TuneJob,
    sweep: Search,
    case_of: Callable[[int], TuneCase],
    watch: ConditionWatch,
    *,
    make_child: Callable[[], Child] = Child,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[TuneEvent]:
    """Visit stops until the sweep is decided, the budget is used up or ``cancelled()``.

    What was measured until then stays. Raises nothing: a stop that cannot run is a row.
    """
    yield from _Tune(job, sweep, case_of, watch, make_child, cancelled, clock).run()


class _Tune:
    def __init__(
        self,
        job: TuneJob,
        sweep: Search,
        case_of: Callable[[int], TuneCase],
        watch: ConditionWatch,
        make_child: Callable[[], Child],
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._job = job
        self._sweep = sweep
        self._case_of = case_of
        self._watch = watch
        self._make_child = make_child
        self._cancelled = cancelled
        self._clock = clock
        self._started_s = clock()
        self._visit_s: list[float] = []
        self._before = Conditions()

    def run(self) -> Iterator[TuneEvent]:
        self._before = self._watch.baseline()
        why = ""
        number = 0
        while (stop := self._sweep.next_stop()) is not None:
            if self._cancelled():
                why = "cancelled"
                break
            left_s = self._left_s()
            usual_s = self._usual_s()
            if left_s <= usual_s * _SAFETY:
                why = "budget"
                break
            most = self._sweep.limit - self._sweep.n_visits
            yield Visiting(
                stop,
                self._sweep.n_visits,
                self._sweep.limit,
                min(left_s, most * usual_s) if usual_s else left_s,
            )
            number += 1
            began_s = self._clock()
            try:
                measurement = self._visit(stop, number)
            except Cancelled:
                why = "cancelled"
                break
            except LauncherError as error:
                if self._left_s() <= _END_S:
                    why = "budget"
                    break
                self._sweep.fail(stop)
                yield Failed(stop, _unmeasured(error))
            else:
                self._visit_s.append(self._clock() - began_s)
                rate = measurement.tok_s or measurement.prompt_tok_s or 0.0
                self._sweep.add(
                    stop,
                    rate,
                    disturbed=bool(measurement.disturbance),
                    prompt_rate=measurement.prompt_tok_s,
                )
                yield Measured(stop, measurement)
        busy = ""
        if self._before.others_cpu is not None and self._before.others_cpu > 0.25:
            busy = tr(
                "Other programs used {n:.0f} % of the processor from the start: the numbers are "
                "lower than they could be."
            ).format(n=100 * self._before.others_cpu)
        elapsed_s = self._clock() - self._started_s
        yield Decided(self._sweep.decision(), why, elapsed_s, busy)

    def _left_s(self) -> float:
        return self._job.budget_s - (self._clock() - self._started_s)

    def _usual_s(self) -> float:
        """How long a visit takes now; 0.0 where nobody knows."""
        if len(self._visit_s) == 1:
            return self._visit_s[0] * _AFTER_FIRST
        return max(self._visit_s[1:][-3:], default=0.0)

    def _visit(self, stop: int, number: int) -> Measurement:
        case, job = self._case_of(stop), self._job
        request = case.request
        lengths: dict[str, object] = {"n_prompt": job.n_prompt, "n_generate": job.n_generate}
        child = self._make_child()
        try:
            opened = self._ask(
                child,
                "bench_open",
                load_request_to_json(request)
                | {"ram_weights_bytes": case.ram_weights_bytes}
                | lengths,
            )
            finish = self._watch.begin(child.pid or 0)
            run = self._ask(child, "bench_repeat", lengths | {"number": number})
            conditions = finish()
        finally:
            child.close()
        notes = (*opened["notes"], *condition_notes(conditions))
        return Measurement(
            model=job.model,
            model_name=job.model_name,
            setting=setting_of(request, case.division),
            machine=job.machine,
            time_s=time.time(),
            n_prompt=job.n_prompt,
            n_generated=job.n_generate,
            depth=max(job.n_prompt, 1),
            prompt_tok_s=run["prompt_tok_s"] if job.n_prompt else None,
            tok_s=run["tok_s"] if job.n_generate else None,
            vram_bytes=opened["vram_bytes"],
            ram_bytes=opened["ram_bytes"],
            notes=notes,
            disturbance=disturbance(conditions, self._before),
            threads=opened.get("n_threads"),
            flash_attention=opened.get("flash_attention"),
            conditions=conditions,
        )

    def _ask(self, child: Child, operation: str, parameters: dict[str, object]) -> dict[str, Any]:
        left_s = max(self._left_s(), 0.1)
        # As long as nothing is known, half of the time is left to the other stops.
        patience_s = max(left_s / 2, min(_COMPILING_S, _COMPILING_SHARE * left_s))
        if self._visit_s:
            patience_s = max(_LEAST_LIMIT_S, _HANGING * max(self._visit_s))
        limit_s = max(round(min(VISIT_LIMIT_S, left_s, patience_s), 1), 0.1)
        answer = child.request(operation, parameters, cancelled=self._cancelled, timeout_s=limit_s)
        if not isinstance(answer, dict):
            raise LauncherError(tr("The helper process gave no numbers."))
        return answer


def _unmeasured(error: LauncherError) -> LauncherError:
    """A crash in mid-measurement says nothing against the file, which was accepted before."""
    reason = error.message.removeprefix(
        tr("llama.cpp refused this file: {reason}").format(reason="")
    )
    return LauncherError(
        tr("This setting could not be measured: {reason}").format(reason=reason),
        tr("It may need more memory than there is; it is left out."),
        error.details,
    )
