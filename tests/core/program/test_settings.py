"""Settings: declared once, unknown keys kept, broken files kept and named."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from moelauncher.core.errors import LauncherError
from moelauncher.core.program import settings as s
from moelauncher.core.program.settings import ALL_SETTINGS, Settings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.toml"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_there_are_defaults(path: Path) -> None:
    settings = Settings.load(path)
    assert settings.notes == ()
    assert settings.get(s.N_CTX) == 4096
    assert settings.get(s.LEAVE_FREE_BYTES) is None
    assert settings.get(s.THEME) == "system"
    assert not path.exists()


def test_every_setting_comes_back(path: Path) -> None:
    values = {
        s.MODEL_FOLDERS.name: ("/models", "C:\\Modelle\\große"),
        s.HF_CACHE.name: False,
        s.SKIPPED_SOURCES.name: ("jan", "ollama"),
        s.HIDDEN_MODELS.name: ("/models/old.gguf",),
        s.LEAVE_FREE_BYTES.name: 1 << 30,
        s.N_CTX.name: 32768,
        s.KV_TYPE.name: "q8_0",
        s.N_UBATCH.name: 1024,
        s.N_THREADS.name: 7,
        s.USE_MMAP.name: False,
        s.BACKENDS.name: "none",
        s.CPU_VARIANT.name: "x64",
        s.GPU_DEVICES.name: ("Vulkan1",),
        s.IDLE_UNLOAD_MINUTES.name: 15,
        s.TEMPERATURE.name: 0.0,
        s.TOP_K.name: 0,
        s.TOP_P.name: 1.0,
        s.MIN_P.name: 0.1,
        s.REPEAT_PENALTY.name: 1.1,
        s.MAX_TOKENS.name: 512,
        s.SYSTEM_PROMPT.name: 'Antworte "kurz".\nAuf Deutsch. 日本語',
        s.KEEP_FIRST_TURNS.name: 2,
        s.KEPT_STATES_BYTES.name: 1 << 20,
        s.THEME.name: "dark",
    }
    settings = Settings.load(path)
    for setting in ALL_SETTINGS:
        settings.set(setting, values[setting.name])
    settings.save()
    again = Settings.load(path)
    assert again.notes == ()
    assert {setting.name: again.get(setting) for setting in ALL_SETTINGS} == values


def test_names_are_unique_and_defaults_are_allowed() -> None:
    assert len({setting.name for setting in ALL_SETTINGS}) == len(ALL_SETTINGS)
    for setting in ALL_SETTINGS:
        assert setting.parse(setting.default) == setting.default
        assert setting.label
        assert setting.help


def test_unknown_keys_are_kept(path: Path) -> None:
    written(path, '[future]\nkey = 3\n\n[context]\nsize = 8192\nlater = "x"\n')
    settings = Settings.load(path)
    settings.set(s.THEME, "light")
    settings.save()
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    assert document == {
        "future": {"key": 3},
        "context": {"size": 8192, "later": "x"},
        "window": {"theme": "light"},
    }


@pytest.mark.parametrize("content", [b"[context\nsize = ", b"\xff\xfe\x00", b"a = 1\na = 2\n"])
def test_a_broken_file_is_moved_aside_and_named(path: Path, content: bytes) -> None:
    written(path, "")
    path.write_bytes(content)
    settings = Settings.load(path)
    aside = path.with_name("settings.toml.broken-1")
    assert aside.read_bytes() == content
    assert str(aside) in settings.notes[0]
    assert settings.get(s.N_CTX) == 4096
    settings.save()
    assert Settings.load(path).notes == ()


def test_a_byte_order_mark_is_no_damage(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes("[chat]\r\nsystem_prompt = 'größer'\r\n".encode("utf-8-sig"))
    settings = Settings.load(path)
    assert settings.notes == ()
    assert settings.get(s.SYSTEM_PROMPT) == "größer"


def test_an_older_broken_file_is_not_overwritten(path: Path) -> None:
    written(path.with_name("settings.toml.broken-1"), "the first")
    written(path, "= again")
    Settings.load(path)
    assert path.with_name("settings.toml.broken-1").read_text(encoding="utf-8") == "the first"
    assert path.with_name("settings.toml.broken-2").exists()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[context]\nsize = -4\n", "context.size"),
        ("[context]\nsize = true\n", "context.size"),
        ('[context]\nkv_type = "q5"\n', "context.kv_type"),
        ("[sampling]\ntop_p = nan\n", "sampling.top_p"),
        ("[models]\nfolders = [1]\n", "models.folders"),
        ('[models]\nhugging_face_cache = "yes"\n', "models.hugging_face_cache"),
    ],
)
def test_nonsense_is_named_not_used_and_not_lost(path: Path, text: str, named: str) -> None:
    settings = Settings.load(written(path, text))
    assert len(settings.notes) == 1
    assert named in settings.notes[0]
    (setting,) = [one for one in ALL_SETTINGS if one.name == named]
    assert settings.get(setting) == setting.default
    settings.save()
    assert repr(tomllib.loads(path.read_text(encoding="utf-8"))) == repr(tomllib.loads(text))


def test_a_value_where_a_table_should_be(path: Path) -> None:
    settings = Settings.load(written(path, "context = 5\n"))
    assert settings.get(s.N_CTX) == 4096
    settings.set(s.N_CTX, 2048)
    settings.save()
    assert Settings.load(path).get(s.N_CTX) == 2048


def test_setting_nonsense_is_refused(path: Path) -> None:
    settings = Settings.load(path)
    with pytest.raises(LauncherError, match="Temperature"):
        settings.set(s.TEMPERATURE, -1.0)
    assert settings.get(s.TEMPERATURE) == s.TEMPERATURE.default


def test_none_forgets(path: Path) -> None:
    settings = Settings.load(written(path, "[engine]\nthreads = 3\n"))
    settings.set(s.N_THREADS, None)
    settings.save()
    assert "threads" not in path.read_text(encoding="utf-8")


def test_saving_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file", encoding="utf-8")
    settings = Settings.load(tmp_path / "config" / "settings.toml")
    with pytest.raises(LauncherError, match="Cannot write"):
        settings.save()


def test_sampling_is_one_value(path: Path) -> None:
    settings = Settings.load(written(path, "[sampling]\ntemperature = 0\ntop_k = 5\n"))
    assert settings.sampling().temperature == 0
    assert settings.sampling().top_k == 5
    assert settings.sampling().seed is None
