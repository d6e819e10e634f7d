"""`onmt-entmax paradigm --format att`: automata for foma and HFST, read independently."""

from collections.abc import Mapping

import pytest

from tests.cli.automata import Key, read_att
from tests.cli.paradigms import Writer


def test_an_automaton_has_the_probability_of_every_form_in_its_cell(
    lemmas_writer: Writer, cell_probs: Mapping[Key, float]
) -> None:
    assert read_att(lemmas_writer.write("att").lines()) == pytest.approx(cell_probs, rel=1e-4)


def test_an_automaton_is_complete(lemmas_writer: Writer) -> None:
    """Its mass is below 1: a search excludes sequences with symbols that are not characters."""
    assert lemmas_writer.write("att").printed.startswith("complete: mass 0.9")
