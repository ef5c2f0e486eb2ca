"""A model in memory with its context: what it was loaded for, and what llama.cpp made of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from moelauncher.core.engine_protocol import CarriedChat, LoadReport, LoadRequest
from moelauncher.core.errors import LauncherError
from moelauncher.core.memory.placement import same_place
from moelauncher.core.translate import tr
from moelauncher.engine.evaluated_context import EvaluatedContext
from moelauncher.engine.find_switches import find_switches
from moelauncher.engine.load_log import parse_load_log
from moelauncher.engine.load_model import LoadedModel, ModelContext, check_context, file_state
from moelauncher.engine.load_verify import find_mismatches


@dataclass
class RunningModel:
    """What is loaded now. ``evaluated`` belongs to ``context``. Engine thread."""

    request: LoadRequest
    model: LoadedModel
    context: ModelContext
    evaluated: EvaluatedContext
    model_lines: list[tuple[str, str]]
    report: LoadReport

    def kept(self) -> CarriedChat:
        """Its conversation was not touched."""
        return CarriedChat("kept", len(self.evaluated.tokens))

    def has_weights_of(self, request: LoadRequest) -> bool:
        """Whether ``request`` wants the same file in the same places."""
        before = self.request
        return (
            before.path == request.path
            and same_place(before.placement, request.placement)
            and before.use_mmap == request.use_mmap
            and self.model.file_state == file_state(request.path)
        )

    def has_context_of(self, request: LoadRequest) -> bool:
        """Whether ``request`` wants the same context, but perhaps with other threads."""
        return replace(self.request.context, n_threads=request.context.n_threads) == request.context

    def check_move(self, request: LoadRequest, *, in_reply: bool) -> None:
        """Raise LauncherError for a move that can be said no to while the old place is there."""
        if self.model.file_state != file_state(request.path):
            raise LauncherError(
                tr("{name} was changed on disk since it was loaded.").format(
                    name=request.path.name
                ),
                tr("Unload it, then load it again."),
            )
        n_tokens = len(self.evaluated.tokens)
        if in_reply and n_tokens >= request.context.n_ctx:
            raise LauncherError(
                tr("The reply in progress needs {n} tokens, the new context holds {limit}.").format(
                    n=n_tokens + 1, limit=request.context.n_ctx
                ),
                tr("Choose a larger context, or apply it after the reply."),
            )
        check_context(request.context, self.model.longest_context)

    def loaded_since(self, started_s: float) -> LoadReport:
        """The report of a load that began at ``started_s`` (perf_counter) and ends now."""
        self.report = replace(
            self.report,
            context=self.request.context,
            n_threads=self.context.n_threads,
            load_s=time.perf_counter() - started_s,
        )
        return self.report

    def free(self) -> None:
        """Take it out of memory."""
        self.context.free()
        self.model.free()


def report_of(
    request: LoadRequest,
    model: LoadedModel,
    context: ModelContext,
    model_lines: list[tuple[str, str]],
    context_lines: list[tuple[str, str]],
) -> LoadReport:
    """What llama.cpp really did, by its own lines; how long it took comes later."""
    log = parse_load_log([*model_lines, *context_lines])
    flash = log.flash_attention
    warnings = log.warnings
    if model.template.too_long:
        warnings = (
            *warnings,
            tr("The file's chat template is too long to be one; ChatML is used instead."),
        )
    return LoadReport(
        path=request.path,
        placement=request.placement,
        context=request.context,
        load_s=0.0,
        n_ctx=context.n_ctx,
        n_threads=context.n_threads,
        flash_attention=flash if flash is not None else model.flash_attention,
        buffers=log.buffers,
        template_source=model.template.source,
        switches=find_switches(model.template),
        mismatches=find_mismatches(request, log, model_lines),
        warnings=warnings,
    )
