"""The data of a sentence's pictures: tokens, branches and attention of its lattice."""

from typing import Any

import pytest

from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page_drawing import drawing
from tests.report.pages import NAMES
from tests.search.table_steppers import TableStepper
from tests.search.tables import DRAW, EOS, D, E, N, W


@pytest.fixture
def nodes() -> list[dict[str, Any]]:
    """The nodes of a drawing of two hypotheses of `DRAW`: w n, and w."""
    lattice = build_lattice(TableStepper(len(NAMES)), [DRAW], [(W, N), (W,)])
    drawn: list[dict[str, Any]] = drawing(lattice, ["a"], NAMES, eos=EOS, backwards=False)["nodes"]
    return drawn


def test_a_drawing_has_the_source() -> None:
    lattice = build_lattice(TableStepper(len(NAMES)), [DRAW], [(W,)])
    assert drawing(lattice, ["a"], NAMES, eos=EOS, backwards=False)["source"] == ["a"]


def test_branches_say_to_which_node_or_hypothesis_they_lead(nodes: list[dict[str, Any]]) -> None:
    """After w, e is in no hypothesis, n leads to the last node, and hypothesis 1 ends."""
    assert nodes[1]["branches"] == [["e", 0.6], ["n", 0.32, 2], [None, 0.08, 1]]


def test_the_end_of_a_hypothesis_has_no_token(nodes: list[dict[str, Any]]) -> None:
    assert nodes[2] == {"branches": [[None, 1.0, 0]]}


# --- a limit of listed tokens, and attention -------------------------------------------------


@pytest.fixture
def limited_nodes() -> list[dict[str, Any]]:
    """The nodes of w e d and w n, with a limit of one token; hypotheses are listed anyway."""
    stepper = TableStepper(len(NAMES), attention=True)
    lattice = build_lattice(stepper, [DRAW], [(W, E, D), (W, N)], limit=1)
    drawn: list[dict[str, Any]] = drawing(lattice, ["a"], NAMES, eos=EOS, backwards=False)["nodes"]
    return drawn


def test_branches_that_are_not_listed_are_summed_and_counted(
    limited_nodes: list[dict[str, Any]],
) -> None:
    """After w, the end is not listed."""
    assert limited_nodes[1]["branches"] == [["e", 0.6, 3], ["n", 0.32, 2]]
    assert limited_nodes[1]["others"] == [0.08, 1]


def test_attention_is_a_position_and_its_weight(limited_nodes: list[dict[str, Any]]) -> None:
    """The weight of source position 0 is 10 times the length of the prefix plus its token ids."""
    assert limited_nodes[1]["attention"] == [0, 10.0 + W]


def test_positions_without_attention_are_left_out(limited_nodes: list[dict[str, Any]]) -> None:
    """The weight after the empty prefix is 0."""
    assert limited_nodes[0]["attention"] == []
