"""Tops follow from heights, and only what is asked for is made exact."""

from __future__ import annotations

import pytest

from moelauncher.gui.chats.message_column import BETWEEN_PX, TOP_PX, MessageColumn
from moelauncher.gui.chats.message_view import MessageView


class Block(MessageView):
    """A message that is guessed to be 50 px tall and is ``true_px``."""

    def __init__(self, true_px: float) -> None:
        super().__init__()
        self.true_px = true_px
        self.layouts = 0

    @property
    def source_text(self) -> str:
        return ""

    @property
    def plain_text(self) -> str:
        return ""

    def estimate(self, width: float) -> None:
        if not self.is_laid_out(width):
            self.height = 50.0

    def _arrange(self, width: float) -> None:
        self.layouts += 1
        self.height = self.true_px


@pytest.fixture
def column():
    column = MessageColumn()
    column.set_width(700)
    column.set_messages([Block(100) for _ in range(10)])
    return column


def layouts(column: MessageColumn) -> list[int]:
    return [message.layouts for message in column.messages]


def expected_tops(column: MessageColumn) -> list[float]:
    tops, y = [], TOP_PX
    for message in column.messages:
        tops.append(y)
        y += message.height + BETWEEN_PX
    return tops


def test_an_empty_column_has_no_height():
    column = MessageColumn()
    assert column.height == 0
    assert column.last is None
    assert column.exact
    assert not column.lay_out_while(lambda: True)


def test_estimates_come_first(column):
    assert layouts(column) == [0] * 10
    assert column.tops == expected_tops(column)
    assert column.height == 2 * TOP_PX + 10 * 50 + 9 * BETWEEN_PX
    assert not column.exact


def test_the_end_alone_is_made_exact(column):
    column.lay_out_end(210)
    assert layouts(column) == [0] * 8 + [1, 1]
    assert column.tops == expected_tops(column)


def test_what_is_seen_from_a_message_on_is_made_exact(column):
    column.lay_out_from(3, 130)
    assert layouts(column) == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert column.tops == expected_tops(column)


def test_slices_go_from_the_end_and_come_to_an_end(column):
    budget = iter([True, True, True, False])
    assert column.lay_out_while(lambda: next(budget))
    assert layouts(column) == [0] * 7 + [1] * 3
    assert column.lay_out_while(lambda: True)
    assert column.exact
    assert not column.lay_out_while(lambda: True)
    assert layouts(column) == [1] * 10
    assert column.tops == expected_tops(column)


def test_another_width_makes_estimates_again(column):
    column.lay_out_all()
    column.set_width(700)
    assert column.exact
    column.set_width(500)
    assert not column.exact
    assert column.tops == expected_tops(column)


@pytest.mark.parametrize(("y", "index"), [(-5, 0), (0, 0), (20, 0), (77, 0), (78, 1), (9999, 9)])
def test_which_message_is_at_a_height(column, y, index):
    assert column.index_at(y) == index


def test_a_new_message_stands_below_the_last(column):
    column.add(Block(30))
    assert column.tops == expected_tops(column)
    assert column.last is column.messages[10]
