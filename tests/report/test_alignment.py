"""Alignments from attention, by hand."""

import torch

from onmt_entmax.report.alignment import alignment

WEIGHTS = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])  # the last: the end


def test_positions_of_positive_weight() -> None:
    found = alignment(WEIGHTS, ["a", "b", "c"], ["x", "y"], dense=False, backwards=False)
    assert found.links == ((0, 0, 0.25), (1, 0, 0.75), (2, 1, 1.0))
    assert found.pharaoh() == "0-0 1-0 2-1"


def test_a_model_that_writes_backwards() -> None:
    found = alignment(WEIGHTS, ["a", "b", "c"], ["x", "y"], dense=False, backwards=True)
    assert found.target == ("y", "x")
    assert found.pharaoh() == "0-1 1-1 2-0"


def test_of_softmax_the_largest_is_written_and_all_are_reported() -> None:
    found = alignment(WEIGHTS, ["a", "b", "c"], ["x", "y"], dense=True, backwards=False)
    assert found.pharaoh() == "1-0 2-1"
    assert found.as_dict()["links"] == ((0, 0, 0.25), (1, 0, 0.75), (2, 1, 1.0))


def test_padding_and_an_empty_output_have_no_links() -> None:
    padded = torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert alignment(padded, ["a", "b"], ["x"], False, False).pharaoh() == "0-0 1-0"
    assert alignment(padded[1:], ["a", "b"], [], False, False).pharaoh() == ""
