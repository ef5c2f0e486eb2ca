"""Every sentence of the session, apart from the logic that picks it. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QObject

from moelauncher.core.engine_protocol import LoadProgress, LoadReport
from moelauncher.core.files.model_facts import ModelFacts
from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.machine import MachineSnapshot
from moelauncher.core.memory.launch_plan import LaunchPlan
from moelauncher.core.memory.placement import same_place
from moelauncher.core.session_state import BUSY_STATES, Controls, LaunchAction, SessionState
from moelauncher.core.units import (
    format_bytes,
    format_duration,
    format_rate,
    format_share,
    format_tokens,
)

#: How much of a load each stage is, for one progress bar over all: where it starts and ends.
_STAGES = {"checking": (0.0, 0.05), "reading": (0.05, 0.95), "context": (0.95, 1.0)}


class SessionTexts(QObject):
    """Texts for the panes. Holds the one line about the build, known after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.build_text = ""

    def state(self, state: SessionState, rate: float | None) -> tuple[str, str]:
        """The status line's first words and their figure."""
        words = {
            SessionState.EMPTY: self.tr("no model selected"),
            SessionState.SELECTED: self.tr("not loaded"),
            SessionState.UNLOADABLE: self.tr("cannot be loaded"),
            SessionState.CHECKING: self.tr("checking the file"),
            SessionState.LOADING: self.tr("loading"),
            SessionState.READY: self.tr("ready"),
            SessionState.PREFILL: self.tr("reading the prompt"),
            SessionState.GENERATING: self.tr("generating"),
            SessionState.MOVING: self.tr("moving the model"),
            SessionState.STOPPING: self.tr("stopping"),
            SessionState.UNLOADING: self.tr("unloading"),
            SessionState.FAILED: self.tr("not loaded"),
        }[state]
        return words, "" if rate is None else format_rate(rate)

    def launch(
        self,
        shown: Controls,
        loaded: LaunchPlan | None,
        plan: LaunchPlan | None,
        expected_s: float | None = None,
    ) -> str:
        """What stands on the large button; ``expected_s`` is how long applying will take."""
        if shown.launch_action is LaunchAction.CANCEL:
            return self.tr("Cancel")
        if shown.launch_action is not LaunchAction.APPLY:
            return self.tr("Launch")
        if shown.why_not == "no_change":
            return self.tr("Loaded")
        if loaded is None or plan is None:
            return self.tr("Apply")
        if loaded.choices.context.kv_type != plan.choices.context.kv_type:
            return self.tr("Apply (chat is read again)")
        if context_only(loaded, plan):
            return self.tr("Apply (no reload, chat goes on)")
        if expected_s is None:
            return self.tr("Apply (chat goes on)")
        return self.tr("Apply ({time}, chat goes on)").format(
            time=format_duration(max(1.0, round(expected_s)))
        )

    def why_not(self, reason: str, entry: CatalogEntry | None) -> str:
        """Why the large button is off."""
        if reason == "problem" and entry is not None:
            return entry.problem or self.tr("This file is no chat model.")
        return {
            "nothing_selected": self.tr("Select a model on the left first."),
            "no_change": self.tr("This is what is loaded: move the slider or change an option."),
            "answering": self.tr("Another model: wait for the reply to end, or stop it."),
            "stopping": self.tr("Stopping what runs."),
            "unloading": self.tr("The model is being taken out of memory."),
        }.get(reason, "")

    def load_fraction(self, event: LoadProgress) -> float:
        """How far the whole load is, 0..1."""
        start, end = _STAGES.get(event.stage, (0.0, 1.0))
        return start + (end - start) * event.fraction

    def load_progress(self, event: LoadProgress, size_bytes: int) -> str:
        """What is done of the load, how fast, and how long it will take."""
        if event.stage == "checking":
            return self.tr("checking the file")
        if event.stage == "context":
            return self.tr("making the context")
        done = event.fraction * size_bytes
        parts = [
            self.tr("reading {done} of {all}").format(
                done=format_bytes(round(done)), all=format_bytes(size_bytes)
            )
        ]
        if event.elapsed_s > 0.5 and done > 0:
            rate = done / event.elapsed_s
            parts.append(self.tr("{size}/s").format(size=format_bytes(round(rate))))
            left = (size_bytes - done) / rate
            parts.append(self.tr("{time} left").format(time=format_duration(left)))
        return " · ".join(parts)

    def loaded(self, facts: ModelFacts, report: LoadReport, *, in_reply: bool = False) -> str:
        """Said once a load went as planned; ``in_reply``: a reply waited for it."""
        if report.load_s < 0.05:  # nothing had to be read anew
            text = self.tr("{name} is loaded; llama.cpp placed it as planned.")
        else:
            text = self.tr("{name} is loaded ({time}); llama.cpp placed it as planned.")
        text = text.format(name=facts.name, time=format_duration(report.load_s))
        carried = report.carried
        if carried is not None and carried.reason and carried.n_tokens:
            again = (
                self.tr("The chat is read again now: {reason}")
                if in_reply
                else self.tr("The chat is read again with the next message: {reason}")
            )
            text += " " + again.format(reason=carried.reason)
        return text

    def back_again(self, report: LoadReport) -> str:
        """Said when a move failed and the place before is there again."""
        text = self.tr("The model is back where it was, and the chat goes on.")
        reason = _why_not_carried(report)
        return f"{text} {reason}".strip()

    def move_cancelled(self, report: LoadReport) -> str:
        """Said when a move was cancelled."""
        return f"{self.tr('The change was cancelled.')} {self.back_again(report)}"

    def moved(self, report: LoadReport, waited_s: float) -> str:
        """Said at the first token after a move."""
        text = self.tr("The reply went on {seconds:.1f} s after the change.").format(
            seconds=waited_s
        )
        reason = _why_not_carried(report)
        if reason:
            text += " " + self.tr("The chat was read again: {reason}").format(reason=reason)
        return text

    def moved_in_prompt(self, report: LoadReport, waited_s: float) -> str:
        """Said when a prompt is read on after a move."""
        text = self.tr("The prompt is read on, {seconds:.1f} s after the change.").format(
            seconds=waited_s
        )
        reason = _why_not_carried(report)
        if reason:
            text += " " + self.tr("It is read from its beginning: {reason}").format(reason=reason)
        return text

    def why_no_tune(self, state: SessionState) -> str:
        """Why Tune is off."""
        if state in BUSY_STATES:
            return self.tr("Wait until the model has answered or loaded.")
        return self.tr("Select a model first.")

    def live_does_not_fit(self) -> str:
        """Said when Apply live leaves a change alone."""
        return self.tr("This does not fit, so it was not applied: press Apply to try all the same.")

    def restored(self, facts: ModelFacts) -> str:
        """Said when a load failed and the model before it is there again."""
        return self.tr("{name} is loaded again as it was before.").format(name=facts.name)

    def not_restored(self, facts: ModelFacts) -> str:
        """Said when not even that worked."""
        return self.tr("Loading {name} as it was before failed too.").format(name=facts.name)

    def idle_unloaded(self, minutes: int) -> str:
        """Said when the GPU was freed by itself."""
        if minutes == 1:
            return self.tr("Idle for a minute: the model is taken out of memory.")
        return self.tr("Idle for {n} minutes: the model is taken out of memory.").format(n=minutes)

    def load_cancelled(self) -> str:
        """Said after a cancel."""
        return self.tr("The load was cancelled; nothing is loaded.")

    def context_full(self) -> str:
        """Said when a reply ended for want of room."""
        return self.tr(
            "The context is full, so the reply ends here: choose a larger one and apply, "
            "or begin a new chat."
        )

    def notice(self, report: LoadReport) -> str:
        """The line above the composer."""
        if report.template_source == "chatml":
            return self.tr("This model brings no chat template: the common ChatML form is used.")
        return ""

    def placement(self, plan: LaunchPlan) -> str:
        """ "24 layers on the CPU", for a reply's footer."""
        if plan.imagined_gpu:
            return self.tr("all on the CPU")
        if plan.slider.dense:
            n = plan.placement.n_gpu_layers
            if n == 1:
                return self.tr("1 layer on the GPU")
            return self.tr("{n} layers on the GPU").format(n=n)
        n = plan.choices.cpu_moe
        if n == 1:
            return self.tr("experts of 1 layer on the CPU")
        return self.tr("experts of {n} layers on the CPU").format(n=n)

    def mark(self, before: LaunchPlan, now: LaunchPlan) -> str:
        """ "30 › 24", else "f16 › q8_0": what changed on the curve; empty where nothing did."""
        dense = now.slider.dense
        old, new = (
            (
                plan.placement.n_gpu_layers if dense else plan.choices.cpu_moe,
                plan.choices.context.kv_type,
                format_tokens(plan.choices.context.n_ctx),
                self._threads(plan.choices.context.n_threads),
                self.tr("ubatch {n}").format(n=plan.choices.context.n_ubatch),
            )
            for plan in (before, now)
        )
        changed = [f"{a} › {b}" for a, b in zip(old, new, strict=True) if a != b]
        # Beside the slider's move the rest would be a long label on a small curve.
        return changed[0] if old[0] != new[0] else ", ".join(changed)

    def _threads(self, n_threads: int | None) -> str:
        if n_threads is None:
            return self.tr("usual threads")
        return self.tr("{n} threads").format(n=n_threads)

    def prompt(self, n_tokens: int, rate: float | None) -> str:
        """The status line's word on the prompt."""
        if n_tokens == 1:
            text = self.tr("prompt 1 token")
        else:
            text = self.tr("prompt {n} tokens").format(n=n_tokens)
        return text if rate is None else f"{text}, {format_rate(rate)}"

    def context(self, used: int | None, total: int | None) -> str:
        """The status line's word on the context."""
        if total is None:
            return ""
        return self.tr("context {used} of {total}").format(
            used=format_tokens(used or 0), total=format_tokens(total)
        )

    def gpu(self, snapshot: MachineSnapshot) -> tuple[str, str]:
        """The status line's word on the first GPU, and where it is from."""
        if not snapshot.gpus:
            return "", ""
        gpu = snapshot.gpus[0]
        parts = []
        if gpu.temperature_c is not None:
            parts.append(self.tr("{t:.0f} °C").format(t=gpu.temperature_c))
        if gpu.utilisation is not None:
            parts.append(format_share(gpu.utilisation))
        if not parts:
            return "", ""
        return self.tr("GPU {figures}").format(
            figures=", ".join(parts)
        ), f"{gpu.name}: {gpu.source}"

    def build(self, report: LoadReport | None) -> tuple[str, str]:
        """The status line's right end."""
        parts = [self.build_text] if self.build_text else []
        if report is not None:
            if report.n_threads == 1:
                parts.append(self.tr("1 thread"))
            else:
                parts.append(self.tr("{n} threads").format(n=report.n_threads))
        return " · ".join(parts), self.tr("The llama.cpp build in use, and its CPU threads")

    def message_waits(self) -> str:
        """Why a message that was sent is not seen yet."""
        return self.tr("Your message is sent as soon as the model is loaded.")

    def empty_chat(self, state: SessionState, entry: CatalogEntry | None) -> str:
        """What an empty chat says."""
        if state is SessionState.READY:
            return self.tr("The model is loaded. Write a message below.")
        if state in (SessionState.CHECKING, SessionState.LOADING):
            return self.tr("The model is being loaded…")
        if state in (SessionState.PREFILL, SessionState.GENERATING, SessionState.MOVING):
            return self.tr("The model is answering in another chat; after that it can answer here.")
        if entry is None:
            return self.tr("Pick a model on the left and press Launch, then write below.")
        if entry.problem:
            return f"{entry.problem} {entry.hint}".strip()
        return self.tr("Press Launch to load {name}, then write below.").format(name=entry.name)


def context_only(loaded: LaunchPlan, plan: LaunchPlan) -> bool:
    """Whether applying needs only a new context on the loaded model."""
    unmoved = same_place(loaded.placement, plan.placement)
    return unmoved and loaded.choices.use_mmap == plan.choices.use_mmap


def _why_not_carried(report: LoadReport) -> str:
    """Why the chat had to be read again after a move; "" where it was not."""
    return report.carried.reason if report.carried is not None else ""
