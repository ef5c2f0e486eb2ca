"""``list --json`` over a tree with everything a model folder can hold, against a table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moelauncher.core.library.catalog import scan
from tests.helpers.command_line import moelauncher
from tests.helpers.expert_layouts import ExpertLayout, write_layout
from tests.helpers.model_tree import write_model_tree, write_small_file

BLOB = "ollama/blobs/sha256-" + "ab" * 32
EYE = "ollama/blobs/sha256-" + "cd" * 32
OLD = "This old file stores every expert as a tensor of its own, which cannot be placed."
UNKNOWN = "The architecture “qwen9moe” is not known to this llama.cpp."
NO = None

#: Path of the first file, number of files, name, architecture, label, role, layers, of them with
#: experts, experts, used, trained context, projector, problem. By path.
TABLE = [
    ("a/b/c/d/deep.GGUF", 1, "Tiny dense", "llama", "Q8_0", "chat", 4, 0, 0, 0, 2048, NO, NO),
    ("bad/cut.gguf", 1, "Tiny moe", "qwen3moe", "Q8_0", "chat", 4, 4, 8, 2, 2048, NO,
     "The file is cut short: 1 KiB are missing."),
    ("bad/empty.gguf", 1, "empty", "", "", "unknown", NO, NO, NO, NO, NO, NO,
     "The file is empty."),
    ("bad/folder.gguf", 0, "folder.gguf", "", "", "folder", NO, NO, NO, NO, NO, NO,
     "This is a folder, not a model file."),
    ("bad/unknown.gguf", 1, "Tiny moe", "qwen9moe", "Q8_0", "chat", 4, 4, 8, 2, 2048, NO, UNKNOWN),
    ("bad/zip.gguf", 1, "zip", "", "", "unknown", NO, NO, NO, NO, NO, NO,
     "This is not a GGUF file."),
    ("holey/big-00001-of-00003.gguf", 2, "Tiny moe", "qwen3moe", "Q8_0", "chat", 4, NO, NO, 2, 2048,
     NO, "Part 2 of 3 is missing: big-00002-of-00003.gguf."),
    ("hub/models--owner--name/snapshots/r1/inter.gguf", 1, "Tiny interleaved", "llama4", "Q8_0",
     "chat", 4, 2, 8, 2, 2048, NO, NO),
    ("mtp/mtp.gguf", 1, "Tiny mtp", "qwen35moe", "Q8_0", "chat", 4, 4, 8, 2, 2048, NO, NO),
    ("odd/bert.gguf", 1, "bert", "bert", "F32", "embedding", 1, 0, 0, 0, 512, NO, NO),
    ("odd/diffusion.gguf", 1, "diffusion", "llada", "F32", "diffusion", 1, 0, 0, 0, 512, NO, NO),
    ("odd/draft.gguf", 1, "draft", "eagle3", "F32", "draft", 1, 0, 0, 0, 512, NO, NO),
    ("odd/embed.gguf", 1, "embed", "qwen3", "F32", "embedding", 1, 0, 0, 0, 512, NO, NO),
    ("odd/image.gguf", 1, "image", "flux", "F32", "diffusion", NO, NO, NO, NO, NO, NO, NO),
    ("odd/imatrix.gguf", 1, "imatrix", "imatrix", "F32", "imatrix", NO, NO, NO, NO, NO, NO, NO),
    ("odd/lora.gguf", 1, "lora", "llama", "F32", "lora", 1, 0, 0, 0, NO, NO, NO),
    ("odd/rerank.gguf", 1, "rerank", "qwen3", "F32", "reranker", 1, 0, 0, 0, 512, NO, NO),
    ("odd/tagged.gguf", 1, "tagged", "qwen3", "F32", "embedding", 1, 0, 0, 0, 512, NO, NO),
    ("odd/vocab.gguf", 1, "vocab", "llama", "", "vocab", 1, 0, 0, 0, 512, NO, NO),
    ("old/mixtral.gguf", 1, "Tiny old-mixtral", "llama", "Q8_0", "chat", 4, 0, 8, 2, 2048, NO, OLD),
    (BLOB, 1, "tiny:2b", "gpt-oss", "Q8_0", "chat", 4, 4, 8, 2, 2048, EYE, NO),
    (EYE, 1, "Projector", "clip", "F16", "mmproj", NO, NO, NO, NO, NO, NO, NO),
    ("plain/Tiny-MoE-Q8_0.gguf", 1, "Tiny moe", "qwen3moe", "Q8_0", "chat", 4, 4, 8, 2, 2048,
     NO, NO),
    ("shards/big-00001-of-00003.gguf", 3, "Tiny shared", "glm4moe", "Q8_0", "chat", 4, 3, 8, 2,
     2048, NO, NO),
    ("twice/gone.gguf", 1, "gone", "", "", "unknown", NO, NO, NO, NO, NO, NO,
     "The link points to a file that is not there."),
    ("vision/eye.gguf", 1, "Tiny fused", "qwen35moe", "Q8_0", "chat", 4, 4, 8, 2, 2048,
     "vision/mmproj-F16.gguf", NO),
    ("vision/mmproj-F16.gguf", 1, "Projector", "clip", "F16", "mmproj", NO, NO, NO, NO, NO, NO, NO),
]  # fmt: skip
_NEEDS_LINKS = ("hub/", "twice/")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model_tree(tmp_path_factory.mktemp("tree"))


def _as_row(document: dict[str, object], root: Path) -> tuple[object, ...]:
    def below(value: object) -> str | None:
        return None if value is None else Path(str(value)).relative_to(root).as_posix()

    files = document["files"]
    assert isinstance(files, list)
    keys = ("name", "arch", "quant", "role", "n_layer", "n_moe_layers", "n_expert")
    more = ("n_expert_used", "ctx_train")
    return (
        below(document["path"]),
        len(files),
        *(document[key] for key in (*keys, *more)),
        below(document["mmproj"]),
        document["problem"],
    )


def test_list_json_equals_the_table(tree: Path) -> None:
    ran = moelauncher("list", tree, "--json")
    assert ran.status == 0
    rows = sorted((_as_row(item, tree) for item in ran.document), key=lambda row: str(row[0]))
    expected = [
        row for row in TABLE if sys.platform != "win32" or not row[0].startswith(_NEEDS_LINKS)
    ]
    assert rows == expected
    # What is not finished is told, and is no model.
    assert "coming.gguf.part: This download is not finished." in ran.err


def test_sizes_are_those_of_all_files(tree: Path) -> None:
    for entry in scan([tree]):
        if entry.files and entry.size_bytes is not None:
            assert entry.size_bytes == sum(file.stat().st_size for file in entry.files)


def test_one_place_named_twice_is_listed_once(tree: Path) -> None:
    once = [entry.path for entry in scan([tree])]
    assert [entry.path for entry in scan([tree, tree / "plain", tree])] == once


@pytest.mark.parametrize(
    ("tensor", "role"),
    [
        ("model.diffusion_model.input_blocks.0.0.weight", "diffusion"),
        ("double_blocks.0.img_attn.qkv.weight", "diffusion"),
        ("blk.0.attn_q.weight.lora_a", "lora"),
        ("blk.0.attn_q.weight.in_sum2", "imatrix"),
        ("v.blk.0.attn_q.weight", "mmproj"),
    ],
)
def test_files_that_name_no_architecture_are_told_by_their_tensors(
    tmp_path: Path, tensor: str, role: str
) -> None:
    path = write_small_file(tmp_path / "x.gguf", "unheard-of", {}, {tensor: (32, 32)})
    nameless = path.read_bytes().replace(b"general.architecture", b"general.architectura")
    path.write_bytes(nameless)
    (entry,) = scan([tmp_path])
    assert entry.role == role
    assert not entry.offered


def test_counts_may_be_lists_with_one_number_a_block(tmp_path: Path) -> None:
    """As files with layers of different widths have them; 0 marks a block without experts."""
    layout = ExpertLayout(
        "qwen3moe", ("aD", "aE", "aE"), {"expert_used_count": [0, 2, 2], "expert_count": [0, 4, 4]}
    )
    (entry,) = scan([write_layout(tmp_path / "x.gguf", layout)])
    assert (entry.n_expert, entry.n_expert_used, entry.n_moe_layers) == (4, 2, 2)
