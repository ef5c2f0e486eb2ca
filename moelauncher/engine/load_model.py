"""Weights from a file into a model, and contexts on it.

In: :class:`LoadRequest`. Out: :class:`LoadedModel` and :class:`ModelContext`, which own the
native objects and free them. Engine thread; inside ``native.log_to``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from moelauncher.core.cpu_cores import MAX_THREADS, default_threads
from moelauncher.core.engine_protocol import LoadRequest
from moelauncher.core.errors import Cancelled, LauncherError
from moelauncher.core.memory.context_settings import ContextSettings
from moelauncher.core.translate import tr
from moelauncher.engine.chat_template import ChatTemplate
from moelauncher.engine.cpu_threads import physical_cores
from moelauncher.engine.memory_failure import speaks_of_memory
from moelauncher.engine.native import Native
from moelauncher.engine.placement_overrides import NativePlacement
from moelauncher.engine.stop_flag import StopFlag
from moelauncher.engine.vocabulary import Vocabulary

#: ggml_type numbers of the KV cache types that are offered.
KV_TYPES = {"f16": 1, "q8_0": 8, "q4_0": 2}

_FLASH_AUTO, _FLASH_OFF, _FLASH_ON = -1, 0, 1

#: Architectures with one learned vector a position (``position_embd.weight``).
_LEARNED_POSITIONS = ("gpt2", "starcoder", "mpt", "bert")


class LoadedModel:
    """Weights in memory. Free it with :meth:`free`, after its contexts."""

    def __init__(
        self,
        native: Native,
        handle: Any,
        path: Path,
        file_state: tuple[int, int],
        on_gpu: bool = False,
    ) -> None:
        lib = native.lib
        self.native = native
        self.handle = handle
        self.path = path
        self.file_state = file_state
        self.on_gpu = on_gpu  # whether a decode may still run when its call returns
        self.vocabulary = Vocabulary(native, handle)
        template = lib.llama_model_chat_template(handle, None)
        self.template = ChatTemplate(
            template.decode("utf-8", errors="replace") if template else None,
            self.vocabulary.bos_text,
            self.vocabulary.eos_text,
        )
        self._stand_in = self.template
        self.longest_context = longest_context(native, handle)
        self.window: int = lib.llama_model_n_swa(handle)
        self.recurrent: bool = lib.llama_model_is_recurrent(handle) or lib.llama_model_is_hybrid(
            handle
        )
        #: Resolved by the first context and kept for the next ones, so that states fit.
        self.flash_attention: bool | None = None

    def template_for(self, text: str | None) -> ChatTemplate:
        """The template ``text`` in place of the model's own; None: its own. Any thread."""
        if text is None:
            return self.template
        if self._stand_in.text != text:
            self._stand_in = ChatTemplate(text, self.vocabulary.bos_text, self.vocabulary.eos_text)
        return self._stand_in

    def free(self) -> None:
        """Give the memory back. The object is of no use afterwards."""
        if self.handle is not None:
            self.native.lib.llama_model_free(self.handle)
            self.handle = None


class ModelContext:
    """KV cache, compute buffers and threads on a model. Free it with :meth:`free`."""

    def __init__(self, native: Native, handle: Any, settings: ContextSettings) -> None:
        lib = native.lib
        self.native = native
        self.handle = handle
        self.settings = settings
        self.n_ctx: int = lib.llama_n_ctx(handle)
        self.n_batch: int = lib.llama_n_batch(handle)
        self.memory = lib.llama_get_memory(handle)

    @property
    def n_threads(self) -> int:
        """Threads that decoding uses now."""
        return int(self.native.lib.llama_n_threads(self.handle))

    def set_threads(self, settings: ContextSettings) -> None:
        """Take over another number of threads; everything else stays as it is."""
        n_threads = threads_for(settings)
        self.native.lib.llama_set_n_threads(self.handle, n_threads, n_threads)
        self.settings = settings

    def free(self) -> None:
        """Give the memory back. The object is of no use afterwards."""
        if self.handle is not None:
            self.native.lib.llama_free(self.handle)
            self.handle = None


def threads_for(settings: ContextSettings) -> int:
    """The number that is asked for, within ggml's limit; else physical cores - 1."""
    n_threads = settings.n_threads or default_threads(physical_cores())
    return min(max(n_threads, 1), MAX_THREADS)


def file_state(path: Path) -> tuple[int, int]:
    """(size, mtime in ns) of the file. Raises LauncherError where it is no readable file."""
    name = path.name
    try:
        if path.is_dir():
            raise LauncherError(
                tr("{name} is a folder, not a model file.").format(name=name),
                tr("Choose a .gguf file."),
                str(path),
            )
        with path.open("rb"):
            status = path.stat()
    except FileNotFoundError as error:
        raise LauncherError(
            tr("{name} is no longer there.").format(name=name),
            tr("Choose another model, or refresh the list."),
            str(path),
        ) from error
    except OSError as error:
        raise LauncherError(
            tr("{name} cannot be read ({reason}).").format(name=name, reason=error.strerror),
            tr("Check the permissions of the file and its folder."),
            str(error),
        ) from error
    return status.st_size, status.st_mtime_ns


def load_weights(
    native: Native,
    request: LoadRequest,
    on_progress: Callable[[float], None],
    cancelled: Callable[[], bool],
    log_lines: Sequence[tuple[str, str]],
) -> LoadedModel:
    """Load the weights of ``request``. ``on_progress`` gets 0..1 about a hundred times.

    ``log_lines`` is where llama.cpp's lines of this load arrive; they explain a failure.
    Raises LauncherError, and Cancelled when ``cancelled()`` turned true meanwhile.
    """
    lib = native.lib
    state = file_state(request.path)
    if cancelled():
        raise Cancelled
    placement = NativePlacement(native, request.placement)
    params = lib.llama_model_default_params()
    placement.apply(params)
    # AUTO could drop mmap by device, and the plan would no longer hold.
    params.load_mode = lib.LLAMA_LOAD_MODE_MMAP if request.use_mmap else lib.LLAMA_LOAD_MODE_NONE
    params.use_extra_bufts = request.weights_fit_ram

    def progress(fraction: float, _user_data: object) -> bool:
        on_progress(fraction)
        return not cancelled()

    callback = lib.llama_progress_callback(progress)
    params.progress_callback = callback
    handle = lib.llama_model_load_from_file(os.fsencode(request.path), params)
    del callback, placement  # llama.cpp has read through them until here
    if not handle:
        if cancelled():
            raise Cancelled
        raise _load_error(request, log_lines)
    if lib.llama_model_has_encoder(handle) or lib.llama_model_is_diffusion(handle):
        lib.llama_model_free(handle)
        raise _writes_no_text(request.path)
    return LoadedModel(native, handle, request.path, state, bool(request.placement.devices))


def context_params(
    native: Native, settings: ContextSettings, flash_attention: bool | None = None
) -> Any:
    """``llama_context_params`` for ``settings``: one sequence, flash attention automatic.

    The dry run uses the same, so that its sizes are those of the real load.
    """
    lib = native.lib
    params = lib.llama_context_default_params()
    params.n_ctx = settings.n_ctx
    params.n_ubatch = min(settings.n_ubatch, settings.n_ctx)
    # Prompts are fed in pieces of one ubatch: progress and Stop come between them.
    params.n_batch = params.n_ubatch
    params.n_seq_max = 1
    params.n_threads = params.n_threads_batch = threads_for(settings)
    params.type_k = params.type_v = KV_TYPES[settings.kv_type]
    params.flash_attn_type = (
        _FLASH_AUTO if flash_attention is None else _FLASH_ON if flash_attention else _FLASH_OFF
    )
    params.swa_full = False  # the default keeps full-size caches for sliding-window layers
    params.no_perf = True
    return params


def longest_context(native: Native, handle: Any) -> int | None:
    """The context beyond which llama.cpp would abort; None for most models.

    Only learned positions end where training did; rotary ones lose track, but compute.
    """
    value = ctypes.create_string_buffer(64)
    native.lib.llama_model_meta_val_str(handle, b"general.architecture", value, len(value))
    if value.value.decode("utf-8", errors="replace") not in _LEARNED_POSITIONS:
        return None
    return int(native.lib.llama_model_n_ctx_train(handle)) or None


def check_context(settings: ContextSettings, longest: int | None) -> None:
    """Raises LauncherError for settings that no context of this model can have.

    ``longest`` is :func:`longest_context`'s answer, None before the model is there.
    """
    if settings.kv_type not in KV_TYPES:
        raise LauncherError(
            tr("There is no KV cache type named {name}.").format(name=settings.kv_type),
            tr("Choose one of {names}.").format(names=", ".join(KV_TYPES)),
        )
    if settings.n_ctx < 1 or settings.n_ubatch < 1:
        raise LauncherError(
            tr("A context of {n} tokens in batches of {batch} is not possible.").format(
                n=settings.n_ctx, batch=settings.n_ubatch
            ),
            tr("Choose numbers of 1 and more."),
        )
    if longest is not None and settings.n_ctx > longest:
        raise LauncherError(
            tr("This model can look back {limit} tokens; a context of {n} was asked for.").format(
                limit=longest, n=settings.n_ctx
            ),
            tr("Choose a context of at most {limit} tokens.").format(limit=longest),
        )


def make_context(
    model: LoadedModel,
    settings: ContextSettings,
    stop: StopFlag,
    log_lines: Sequence[tuple[str, str]],
) -> ModelContext:
    """A context on ``model``. Raises LauncherError when it is impossible or does not fit."""
    check_context(settings, model.longest_context)
    native = model.native
    params = context_params(native, settings, model.flash_attention)
    handle = native.lib.llama_init_from_model(model.handle, params)
    if not handle:
        if speaks_of_memory(log_lines):
            raise LauncherError(
                tr("There is not enough memory for a context of {n} tokens.").format(
                    n=settings.n_ctx
                ),
                tr("Choose a smaller context, a smaller KV type, or more layers on the CPU."),
                last_lines(log_lines),
            )
        if model.flash_attention is False and settings.kv_type != "f16":
            raise LauncherError(
                tr("A KV cache in {kv_type} needs flash attention, which is off.").format(
                    kv_type=settings.kv_type
                ),
                tr("Choose the KV type f16, or let flash attention be on."),
                last_lines(log_lines),
            )
        raise LauncherError(
            tr("llama.cpp could not make a context of {n} tokens for this model.").format(
                n=settings.n_ctx
            ),
            tr("Choose a smaller context or the KV type f16."),
            last_lines(log_lines),
        )
    context = ModelContext(native, handle, settings)
    if not context.memory:  # an embedding model remembers no tokens
        context.free()
        raise _writes_no_text(model.path)
    stop.install(native.lib, handle)
    return context


def last_lines(log_lines: Sequence[tuple[str, str]], count: int = 30) -> str:
    """The end of the native log without its debug lines, as details of an error."""
    return "\n".join([text for level, text in log_lines if level != "debug"][-count:])


def _writes_no_text(path: Path) -> LauncherError:
    return LauncherError(
        tr("{name} is not a model that writes text token by token.").format(name=path.name),
        tr("Choose a chat model."),
    )


def _load_error(request: LoadRequest, log_lines: Sequence[tuple[str, str]]) -> LauncherError:
    name, details = request.path.name, last_lines(log_lines)
    if speaks_of_memory(log_lines):
        return LauncherError(
            tr("There is not enough memory to load {name}.").format(name=name),
            tr("Keep the experts of more layers on the CPU, or close other programs."),
            details,
        )
    errors = [text for level, text in log_lines if level == "error"]
    # "llama_model_load: error loading model: WHAT": the function is of no interest.
    reason = errors[0].partition(": ")[2] if errors else tr("llama.cpp did not say why")
    reason = reason.removeprefix("error loading model: ")
    return LauncherError(
        tr("{name} could not be loaded ({reason}).").format(name=name, reason=reason),
        tr("The file may be damaged, or too new for this build of llama.cpp."),
        details,
    )
