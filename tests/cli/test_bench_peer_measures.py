"""The accuracy by which the benchmark of peers compares systems."""

import pytest

from tools.bench.peer_measures import exact_match
from tools.bench.peer_systems.system import PeerError


def test_an_unknown_symbol_is_wrong_even_in_a_reference() -> None:
    references = ["x y", "<unk>"]
    assert exact_match(["a", "b"], references, references) == 50


def test_equal_sources_count_once() -> None:
    sources, references = ["a", "a", "b"], ["x", "y", "z"]
    assert exact_match(sources, references, ["y", "y", "w"]) == 50


def test_missing_predictions_are_refused() -> None:
    with pytest.raises(PeerError, match="1 predictions for 2 sources"):
        exact_match(["a", "b"], ["x", "y"], ["x"])
