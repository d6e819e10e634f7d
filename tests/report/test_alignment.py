"""Alignments from attention, by hand."""

import pytest
import torch

from onmt_entmax.report.alignment import Alignment, alignment

# Attention of the outputs x and y, and of the end symbol, to the sources a, b and c.
WEIGHTS = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
LINKS = ((0, 0, 0.25), (1, 0, 0.75), (2, 1, 1.0))  # source, target, weight


def aligned(backwards: bool = False) -> Alignment:
    """Return the alignment of a sparse model that writes in either direction."""
    return alignment(WEIGHTS, ["a", "b", "c"], ["x", "y"], dense=False, backwards=backwards)


def test_links_are_the_pairs_of_positive_weight() -> None:
    assert aligned().links == LINKS


def test_a_line_of_pharaoh_has_the_positions_of_the_links() -> None:
    assert aligned().pharaoh() == "0-0 1-0 2-1"


def test_the_target_of_a_right_to_left_model_is_in_the_order_of_the_text() -> None:
    assert aligned(backwards=True).target == ("y", "x")


def test_links_of_a_right_to_left_model_count_positions_in_the_order_of_the_text() -> None:
    assert aligned(backwards=True).pharaoh() == "0-1 1-1 2-0"


# --- softmax, whose weights are all positive ---

DENSE_WEIGHTS = torch.tensor([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])


@pytest.fixture
def dense() -> Alignment:
    return alignment(DENSE_WEIGHTS, ["a", "b", "c"], ["x", "y"], dense=True, backwards=False)


def test_the_line_of_softmax_has_the_largest_weights(dense: Alignment) -> None:
    assert dense.pharaoh() == "1-0 2-1"


def test_the_record_of_softmax_has_all_weights(dense: Alignment) -> None:
    assert dense.as_dict()["links"] == (
        (0, 0, 0.25), (1, 0, 0.5), (2, 0, 0.25),
        (0, 1, 0.125), (1, 1, 0.125), (2, 1, 0.75),
    )  # fmt: skip


# --- what has no links ---

PADDED = torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])  # of one output, to two sources


def test_padding_has_no_links() -> None:
    padded = alignment(PADDED, ["a", "b"], ["x"], dense=False, backwards=False)
    assert padded.pharaoh() == "0-0 1-0"


def test_an_empty_output_has_no_links() -> None:
    empty = alignment(PADDED[1:], ["a", "b"], [], dense=False, backwards=False)
    assert empty.pharaoh() == ""
