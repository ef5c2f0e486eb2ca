"""The user's settings: each declared once, kept in one TOML file.

In: ``settings.toml``. Out: typed values (``settings.get(LEAVE_FREE_BYTES)``). What the
file holds beyond the declared ones is kept. A broken file is moved aside and named, never
overwritten; a value that makes no sense is not used, and named. One thread.
"""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import TypeVar, cast

import tomli_w

from moelauncher.core.atomic_file import write_text_atomically
from moelauncher.core.cpu_cores import MAX_THREADS
from moelauncher.core.damaged_file import set_aside
from moelauncher.core.engine_protocol import Sampling
from moelauncher.core.errors import LauncherError
from moelauncher.core.program.setting import (
    Setting,
    flag,
    one_of,
    or_none,
    real,
    text,
    texts,
    whole,
)
from moelauncher.core.translate import tr

T = TypeVar("T")

KV_TYPES = ("f16", "q8_0", "q4_0")
THEMES = ("system", "dark", "light")
_SAMPLING = Sampling()

MODEL_FOLDERS: Setting[tuple[str, ...]] = Setting(
    "models.folders", (), "Model folders", "Folders that are searched for GGUF files.", texts
)
HF_CACHE = Setting(
    "models.hugging_face_cache",
    True,
    "List the Hugging Face cache",
    "Also list models that other programs fetched from Hugging Face.",
    flag,
)
SKIPPED_SOURCES: Setting[tuple[str, ...]] = Setting(
    "models.skipped_sources",
    (),
    "Programs not looked at",
    "Programs whose models are not listed: lm_studio, llama_cpp, jan, gpt4all, "
    "text_generation_webui, koboldcpp, ollama.",
    texts,
)
HIDDEN_MODELS: Setting[tuple[str, ...]] = Setting(
    "models.hidden",
    (),
    "Models taken from the list",
    "Files that are not listed though a folder holds them.",
    texts,
)
LEAVE_FREE_BYTES: Setting[int | None] = Setting(
    "gpu.leave_free_bytes",
    None,
    "Leave free on each GPU",
    "VRAM that stays for other programs. Empty: 512 MiB where a display hangs on the GPU, "
    "256 MiB elsewhere, more where past loads needed it.",
    or_none(whole(0, 1 << 50)),
)
N_CTX = Setting(
    "context.size",
    4096,
    "Context",
    "Tokens that the model can look back on. More needs more memory.",
    whole(1, 1 << 31),
)
KV_TYPE = Setting(
    "context.kv_type",
    "f16",
    "KV cache",
    "How exactly the context is kept: q8_0 takes half the memory of f16, q4_0 a quarter.",
    one_of(KV_TYPES),
    KV_TYPES,
)
N_UBATCH = Setting(
    "context.ubatch",
    512,
    "Prompt batch",
    "Prompt tokens computed at once. More reads prompts faster and takes more VRAM.",
    whole(1, 65536),
)
N_THREADS: Setting[int | None] = Setting(
    "engine.threads",
    None,
    "Threads",
    "CPU threads. Empty: one less than the processor has cores.",
    or_none(whole(1, MAX_THREADS)),
)
USE_MMAP = Setting(
    "engine.use_mmap",
    True,
    "Map model files",
    "Read weights through the system's file cache: quick to load again, and memory is given "
    "back under pressure.",
    flag,
)
BACKENDS = Setting(
    "engine.backends",
    "auto",
    "GPU interface",
    "What computes on the GPU: auto (all that work here), vulkan, cuda, or none. Holds from the "
    "next start of the program on, in builds that bring several.",
    text,
)
CPU_VARIANT = Setting(
    "engine.cpu_variant",
    "auto",
    "Processor variant",
    "Which instruction sets llama.cpp uses: auto (the best that this processor has), or one by "
    "name, as the doctor lists them. Holds from the next start of the program on.",
    text,
)
GPU_DEVICES: Setting[tuple[str, ...]] = Setting(
    "gpu.devices",
    (),
    "GPUs used",
    "Names of the GPUs that models are placed on, as llama.cpp calls them (Vulkan0, CUDA1). "
    "Empty: all that llama.cpp would take by itself.",
    texts,
)
IDLE_UNLOAD_MINUTES = Setting(
    "engine.idle_unload_minutes",
    0,
    "Free the GPU when idle",
    "Minutes without a message after which the model is unloaded; the next message loads it "
    "again. 0: never.",
    whole(0, 10_000),
)
TEMPERATURE = Setting(
    "sampling.temperature",
    _SAMPLING.temperature,
    "Temperature",
    "0 always takes the likeliest token; higher is more varied.",
    real(0, 10),
)
TOP_K = Setting(
    "sampling.top_k",
    _SAMPLING.top_k,
    "Top-k",
    "Draw from the k likeliest tokens. 0: from all.",
    whole(0, 1_000_000),
)
TOP_P = Setting(
    "sampling.top_p",
    _SAMPLING.top_p,
    "Top-p",
    "Draw from the likeliest tokens that together reach this probability.",
    real(0, 1),
)
MIN_P = Setting(
    "sampling.min_p",
    _SAMPLING.min_p,
    "Min-p",
    "Leave out tokens less likely than this part of the likeliest one.",
    real(0, 1),
)
REPEAT_PENALTY = Setting(
    "sampling.repeat_penalty",
    _SAMPLING.repeat_penalty,
    "Repeat penalty",
    "Above 1 makes tokens that were just used less likely.",
    real(0.1, 10),
)
MAX_TOKENS: Setting[int | None] = Setting(
    "sampling.max_tokens",
    None,
    "Longest reply",
    "Tokens after which a reply ends. Empty: until the context is full.",
    or_none(whole(1, 1 << 31)),
)
SYSTEM_PROMPT = Setting(
    "chat.system_prompt",
    "",
    "System prompt",
    "What the model is told before every chat.",
    text,
)
KEEP_FIRST_TURNS = Setting(
    "chat.keep_first_turns",
    0,
    "Always keep the first turns",
    "When the oldest turns are left out to make room, so many of the first ones stay; the "
    "system prompt always does.",
    whole(0, 1000),
)
KEPT_STATES_BYTES = Setting(
    "chat.kept_states_bytes",
    4 << 30,
    "Long chats on the disk",
    "Bytes of disk for what models made of long chats, so that opening one again does not read "
    "it again; the longest unused go first. It holds the chats' text. 0: nothing is kept.",
    whole(0, 1 << 50),
)
THEME = Setting(
    "window.theme",
    "system",
    "Theme",
    "Dark, light, or as the system.",
    one_of(THEMES),
    choices=THEMES,
)

ALL_SETTINGS: tuple[Setting[object], ...] = cast(
    "tuple[Setting[object], ...]",
    (
        MODEL_FOLDERS,
        HF_CACHE,
        SKIPPED_SOURCES,
        HIDDEN_MODELS,
        LEAVE_FREE_BYTES,
        N_CTX,
        KV_TYPE,
        N_UBATCH,
        N_THREADS,
        USE_MMAP,
        BACKENDS,
        CPU_VARIANT,
        GPU_DEVICES,
        IDLE_UNLOAD_MINUTES,
        TEMPERATURE,
        TOP_K,
        TOP_P,
        MIN_P,
        REPEAT_PENALTY,
        MAX_TOKENS,
        SYSTEM_PROMPT,
        KEEP_FIRST_TURNS,
        KEPT_STATES_BYTES,
        THEME,
    ),
)


class Settings:
    """The settings of one file. Make it with :meth:`load`."""

    def __init__(self, path: Path, document: dict[str, object], notes: list[str]) -> None:
        self._path = path
        self._document = document
        self._values: dict[str, object] = {}
        #: What was found wrong while loading, a sentence each, for the status line.
        self.notes: tuple[str, ...] = ()
        for setting in ALL_SETTINGS:
            found = self._find(setting.name)
            if found is None:
                continue
            try:
                self._values[setting.name] = setting.parse(found)
            except ValueError as error:
                notes.append(
                    tr("{name} in {path} is not used: {reason}.").format(
                        name=setting.name, path=path, reason=error
                    )
                )
        self.notes = tuple(notes)

    @classmethod
    def load(cls, path: Path) -> Settings:
        """Read ``path``; a missing file means defaults. Never raises: see ``notes``."""
        notes: list[str] = []
        document: dict[str, object] = {}
        try:
            # Editors on Windows put a byte order mark in front, which TOML does not know.
            document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            pass
        except OSError as error:
            notes.append(
                tr("The settings in {path} cannot be read: {reason}.").format(
                    path=path, reason=error.strerror or str(error)
                )
            )
        except (ValueError, RecursionError):  # UnicodeDecodeError and TOMLDecodeError are these
            notes.append(
                set_aside(
                    path,
                    moved=tr(
                        "The settings could not be understood and were moved to {path}; "
                        "defaults are used."
                    ),
                    stays=tr("The settings in {path} cannot be understood; defaults are used."),
                )
            )
        return cls(path, document, notes)

    def get(self, setting: Setting[T]) -> T:
        """The user's value, or the default."""
        return cast(T, self._values.get(setting.name, setting.default))

    def set(self, setting: Setting[T], value: T) -> None:
        """Change a value in memory; None forgets it. Raises LauncherError on nonsense."""
        try:
            parsed = setting.parse(value)
        except ValueError as error:
            raise LauncherError(
                tr("{label}: {reason}.").format(label=tr(setting.label), reason=error)
            ) from error
        table, key = self._place(setting.name)
        if parsed is None:
            table.pop(key, None)
            self._values.pop(setting.name, None)
        else:
            table[key] = list(parsed) if isinstance(parsed, tuple) else parsed
            self._values[setting.name] = parsed

    def save(self) -> None:
        """Write the file whole. Raises LauncherError where that is impossible."""
        write_text_atomically(self._path, tomli_w.dumps(copy.deepcopy(self._document)))

    def sampling(self) -> Sampling:
        """The user's sampling defaults as one value."""
        return Sampling(
            temperature=self.get(TEMPERATURE),
            top_k=self.get(TOP_K),
            top_p=self.get(TOP_P),
            min_p=self.get(MIN_P),
            repeat_penalty=self.get(REPEAT_PENALTY),
        )

    def _find(self, name: str) -> object:
        table, key = name.split(".")
        found = self._document.get(table)
        return found.get(key) if isinstance(found, dict) else None

    def _place(self, name: str) -> tuple[dict[str, object], str]:
        table, key = name.split(".")
        found = self._document.get(table)
        if not isinstance(found, dict):
            found = {}
            self._document[table] = found
        return cast("dict[str, object]", found), key
