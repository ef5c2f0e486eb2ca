"""Quantisations of one model belong together; other models do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_groups import group_key, group_name, quant_label


def entry(file: str, name: str = "", quant: str = "Q4_K_M", **values: object) -> CatalogEntry:
    path = Path("/models") / file
    known = {"arch": "qwen3moe", "role": "chat", "n_layer": 48, "n_expert": 128} | values
    return CatalogEntry(path=path, files=(path,), name=name or path.stem, quant=quant, **known)


def test_quantisations_share_a_key() -> None:
    keys = {
        group_key(entry("a-Q4_K_M.gguf", "Qwen3 30B A3B")),
        group_key(entry("b.gguf", "Qwen3-30B-A3B", "Q8_0")),
        group_key(entry("Qwen3-30B-A3B-UD-IQ2_XXS.gguf", quant="IQ2_XXS")),
        group_key(entry("c.gguf", "qwen3_30b_a3b.Q6_K")),
    }
    assert len(keys) == 1
    assert "" not in keys


def test_other_models_do_not() -> None:
    base = group_key(entry("a.gguf", "Qwen3 30B A3B"))
    assert group_key(entry("b.gguf", "Qwen3 30B A3B Thinking")) != base
    assert group_key(entry("c.gguf", "Qwen3 30B A3B", n_expert=64)) != base
    assert group_key(entry("d.gguf", "Qwen3 30B A3B", arch="qwen3")) != base


def test_rows_with_a_problem_and_rows_without_a_name_stand_alone() -> None:
    assert group_key(entry("a.gguf", "X", problem="cut short")) == ""
    assert group_key(entry("a.gguf", "X", role="embedding")) == ""
    assert group_key(entry("Q4_K_M.gguf")) == ""


@pytest.mark.parametrize(
    ("file", "quant", "label"),
    [
        ("Qwen3-UD-Q4_K_XL.gguf", "Q4_K_M", "UD-Q4_K_XL"),
        ("qwen3.q4_k_m.gguf", "Q4_K_M", "Q4_K_M"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4", "MXFP4"),
        ("model.gguf", "Q8_0", "Q8_0"),
        ("says-Q8_0.gguf", "IQ2_XXS", "IQ2_XXS"),
        ("Q4_K_M-00001-of-00002.gguf", "Q4_K_M", "Q4_K_M"),
        ("big-BF16.gguf", "BF16", "BF16"),
    ],
)
def test_labels(file: str, quant: str, label: str) -> None:
    assert quant_label(entry(file, quant=quant)) == label


def test_the_group_s_name_has_no_quantisation_in_it() -> None:
    assert group_name(entry("x.gguf", "Qwen3-30B-A3B-Q4_K_M")) == "Qwen3-30B-A3B"
    assert group_name(entry("x.gguf", "Q8_0")) == "Q8_0"
