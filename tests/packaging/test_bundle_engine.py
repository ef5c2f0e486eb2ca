"""A wheel's libraries, each under three names, become one file each."""

from __future__ import annotations

from pathlib import Path

import bundle_engine

LINUX = [
    *("libllama.so", "libllama.so.0", "libllama.so.0.5.0"),
    *("libggml.so", "libggml.so.0", "libggml.so.0.25.3"),
    *("libggml-base.so", "libggml-base.so.0", "libggml-base.so.0.25.3"),
    *("libggml-cpu-x64.so", "libggml-cpu-x64.so.0", "libggml-cpu-x64.so.0.25.3"),
    *("libggml-vulkan.so", "libggml-vulkan.so.0", "libggml-vulkan.so.0.25.3"),
]


def test_each_library_is_kept_under_the_name_it_is_asked_for() -> None:
    assert bundle_engine.needed_libraries(LINUX) == [
        "libggml-base.so.0",
        "libggml-cpu-x64.so",
        "libggml-vulkan.so",
        "libggml.so.0",
        "libllama.so",
    ]
    windows = ["ggml-base.dll", "ggml-cpu-x64.dll", "ggml.dll", "ggml.lib", "llama.dll"]
    assert bundle_engine.needed_libraries(windows) == sorted(set(windows) - {"ggml.lib"})


def test_engine_folder_has_the_package_without_server_and_doubles(tmp_path: Path) -> None:
    package = tmp_path / "unpacked" / "llama_cpp"
    (package / "lib").mkdir(parents=True)
    (package / "server").mkdir()
    (package / "server" / "app.py").write_text("", encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    for name in LINUX:
        (package / "lib" / name).write_bytes(b"")
    target = tmp_path / "engine"
    for _ in range(2):  # also over what an earlier build left
        bundle_engine.make_engine(tmp_path / "unpacked", target)
    files = sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())
    assert files == [
        "llama_cpp/__init__.py",
        "llama_cpp/lib/libggml-base.so.0",
        "llama_cpp/lib/libggml-cpu-x64.so",
        "llama_cpp/lib/libggml-vulkan.so",
        "llama_cpp/lib/libggml.so.0",
        "llama_cpp/lib/libllama.so",
    ]
    assert bundle_engine.modules_of(target / "llama_cpp" / "lib") == ["cpu-x64", "vulkan"]
