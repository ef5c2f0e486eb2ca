"""Finds by trial what a chat template lets one switch.

In: the template. Out: the switches that change the prompt, and what the template does
without being told. Templates are programs of strangers: each trial is bounded in time.
Any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from moelauncher.core.engine_protocol import ChatMessage
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.template_switch import EFFORT, ON_OFF, TemplateSwitch, named_efforts
from moelauncher.engine.chat_template import ChatTemplate

#: Of the thread's own work: real templates take a millisecond or two, on a busy machine too.
TRIAL_S = 0.5

#: Compiling cannot be stopped, and takes a second a 50 kB.
LONGEST_TRIED = 50_000

#: Some templates leave thinking to a system prompt where there is one.
_TRIALS = (
    (ChatMessage("user", "Hello"),),
    (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello")),
)


def find_switches(
    template: ChatTemplate, clock: Callable[[], float] = time.thread_time
) -> tuple[TemplateSwitch, ...]:
    """At most one switch: on and off is asked for first, then the effort."""
    if len(template.text) > LONGEST_TRIED:
        return ()
    until_s = clock() + TRIAL_S

    def rendered(values: Mapping[str, object]) -> tuple[str, ...] | None:
        try:
            return tuple(
                template.render(trial, values, cancelled=lambda: clock() > until_s)
                for trial in _TRIALS
            )
        except (LauncherError, Cancelled):
            return None

    for name in (*ON_OFF, EFFORT):
        if name not in template.text:
            continue
        wanted: tuple[bool | str, ...] = (False, True)
        if name == EFFORT:
            wanted = named_efforts(template.text)
        prompts = {value: rendered({name: value}) for value in wanted}
        values = tuple(value for value, prompt in prompts.items() if prompt is not None)
        if len({prompts[value] for value in values}) < 2:
            continue
        untold = rendered({})
        default = next((value for value in values if prompts[value] == untold), None)
        return (TemplateSwitch(name, values, default),)
    return ()
