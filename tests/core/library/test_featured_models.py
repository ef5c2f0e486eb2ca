"""The short list of offers, and a user's own copy of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.library.featured_models import FILE_NAME, featured_models


def test_the_program_offers_some_well_known_models(tmp_path: Path) -> None:
    offers = featured_models(tmp_path)
    assert 2 <= len(offers) <= 6
    for offer in offers:
        assert offer.link.quant and offer.name and offer.about


def test_the_user_s_copy_is_read_instead(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(
        '[[model]]\nlink = "o/n:Q8_0"\n[[model]]\nname = "no link"\n[[model]]\nlink = "bad"\n',
        encoding="utf-8",
    )
    (offer,) = featured_models(tmp_path)
    assert (offer.name, offer.link.quant, offer.about) == ("o/n", "Q8_0", "")


@pytest.mark.parametrize("text", ["", "model = 5", "[[model", "model = [1, 2]", "\0"])
def test_a_copy_that_makes_no_sense_offers_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8")
    assert featured_models(tmp_path) == ()
