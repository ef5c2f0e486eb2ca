"""A folder tree with one of everything that a model folder can hold."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from tests.helpers.gguf_files import write_mmproj, write_tiny_model


def write_small_file(
    path: Path, arch: str, metadata: Mapping[str, object], tensors: Mapping[str, tuple[int, ...]]
) -> Path:
    """A GGUF file of zeros; ``tensors`` are shapes in ggml's order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(str(path), arch)
    for key, value in metadata.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_array(key, value)
    for name, shape in tensors.items():
        writer.add_tensor(name, np.zeros(tuple(reversed(shape)), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_ollama_model(store: Path, tag: str, blob: str, projector: str = "") -> None:
    """A manifest ``library/MODEL/TAG`` that names blobs by their digests."""
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{blob}"}]
    if projector:
        kind = "application/vnd.ollama.image.projector"
        layers.append({"mediaType": kind, "digest": f"sha256:{projector}"})
    layers.append({"mediaType": "application/vnd.ollama.image.params", "digest": "sha256:../x"})
    model, _, version = tag.partition(":")
    manifest = store / "manifests" / "registry.ollama.ai" / "library" / model / version
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}), encoding="utf-8")


def write_model_tree(root: Path) -> Path:
    """Everything at once, below ``root``."""
    block = {"blk.0.attn_q.weight": (32, 32), "token_embd.weight": (32, 64)}
    one_layer = {"block_count": 1, "embedding_length": 32, "context_length": 512}

    def keys(arch: str, **extra: object) -> dict[str, object]:
        named = {f"{arch}.{key}": value for key, value in one_layer.items()}
        return named | {key.replace("__", "."): value for key, value in extra.items()}

    write_tiny_model(root / "plain" / "Tiny-MoE-Q8_0.gguf", "moe")
    write_tiny_model(root / "a" / "b" / "c" / "d" / "deep.GGUF", "dense")
    write_tiny_model(root / "shards" / "big.gguf", "shared", split_max_tensors=30)
    write_tiny_model(root / "holey" / "big.gguf", "moe", split_max_tensors=20)
    sorted((root / "holey").glob("big-*.gguf"))[1].unlink()
    write_tiny_model(root / "vision" / "eye.gguf", "fused")
    write_mmproj(root / "vision" / "mmproj-F16.gguf", n_embd=64)
    write_tiny_model(root / "mtp" / "mtp.gguf", "mtp")
    write_tiny_model(root / "old" / "mixtral.gguf", "old-mixtral")
    whole = (root / "plain" / "Tiny-MoE-Q8_0.gguf").read_bytes()

    odd = root / "odd"
    write_small_file(
        odd / "lora.gguf",
        "llama",
        {"general.type": "adapter", "adapter.type": "lora"},
        {"blk.0.attn_q.weight.lora_a": (32, 8)},
    )
    write_small_file(
        odd / "imatrix.gguf", "imatrix", {"general.type": "imatrix"}, {"a.in_sum2": (32, 1)}
    )
    write_small_file(odd / "vocab.gguf", "llama", keys("llama"), {})
    write_small_file(odd / "embed.gguf", "qwen3", keys("qwen3", qwen3__pooling_type=3), block)
    write_small_file(odd / "rerank.gguf", "qwen3", keys("qwen3", qwen3__pooling_type=4), block)
    tagged = keys("qwen3", general__tags=["sentence-similarity", "transformers"])
    write_small_file(odd / "tagged.gguf", "qwen3", tagged, block)
    write_small_file(odd / "bert.gguf", "bert", keys("bert"), block)
    write_small_file(odd / "draft.gguf", "eagle3", keys("eagle3"), block)
    write_small_file(odd / "diffusion.gguf", "llada", keys("llada"), block)
    write_small_file(odd / "image.gguf", "flux", {}, {"double_blocks.0.img.weight": (32, 32)})

    bad = root / "bad"
    bad.mkdir()
    (bad / "cut.gguf").write_bytes(whole[:-1000])
    (bad / "empty.gguf").write_bytes(b"")
    (bad / "zip.gguf").write_bytes(b"PK\x03\x04")
    (bad / "unknown.gguf").write_bytes(whole.replace(b"qwen3moe", b"qwen9moe"))
    (bad / "folder.gguf").mkdir()
    (bad / "coming.gguf.part").write_bytes(whole[:5000])
    (bad / "readme.txt").write_text("no model", encoding="utf-8")

    store = root / "ollama"
    digest, projector = "ab" * 32, "cd" * 32
    (store / "blobs").mkdir(parents=True)
    write_tiny_model(store / "blobs" / f"sha256-{digest}", "sliding")
    write_mmproj(store / "blobs" / f"sha256-{projector}", n_embd=64)
    (store / "blobs" / f"sha256-{'ef' * 32}").write_bytes(b"a template")
    write_ollama_model(store, "tiny:latest", digest, projector)
    write_ollama_model(store, "tiny:2b", digest, projector)

    if sys.platform != "win32":
        hub = root / "hub" / "models--owner--name"
        (hub / "blobs").mkdir(parents=True)
        write_tiny_model(hub / "blobs" / "0a1b2c", "interleaved")
        for revision in ("r1", "r2"):
            (hub / "snapshots" / revision).mkdir(parents=True)
            (hub / "snapshots" / revision / "inter.gguf").symlink_to(hub / "blobs" / "0a1b2c")
        again = root / "twice"
        again.mkdir()
        (again / "linked.gguf").symlink_to(root / "plain" / "Tiny-MoE-Q8_0.gguf")
        os.link(root / "plain" / "Tiny-MoE-Q8_0.gguf", again / "hard.gguf")
        (again / "gone.gguf").symlink_to(again / "nothing")
        (again / "loop").symlink_to(root, target_is_directory=True)
    return root
