"""Searches that first follow one prefix, and start again with the full beam if it proves nothing.

Beam search does so with a softmax: one prefix is cheap, and mostly proves its result.
"""

from typing import NamedTuple, get_args

import pytest

from onmt_entmax.search import SearchConfig, SearchResult, beam_search
from onmt_entmax.search.config import Stop
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.automata import compiled
from tests.search.enumeration import Tokens
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed

# The most probable first token leads to less probable outputs: (2, 4) and (2, 5) have 0.25 each,
# and (3,) has 0.4. One prefix follows (2,), and then cannot prove its output.
GARDEN_PATH = Fixed({(): {2: 0.5, 3: 0.4, 4: 0.1}, (2,): {4: 0.5, 5: 0.5}})
# Its neighbour in the batch, with one output, which one prefix proves in more steps.
LONGER = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {4: 1.0}})


class Searched(NamedTuple):
    """The results of a batch of both, and the stepper, which counted the work."""

    stepper: TableStepper
    garden_path: SearchResult
    longer: SearchResult


def search(stop: Stop, can_join: bool) -> Searched:
    """Search both with a beam of two, as with a softmax."""
    stepper = TableStepper(7)
    stepper.dense, stepper.can_join = True, can_join
    config = SearchConfig(beam_size=2, stop=stop)
    return Searched(stepper, *beam_search(stepper, [GARDEN_PATH, LONGER], config))


each_stop = pytest.mark.parametrize("stop", get_args(Stop))
joined_or_apart = pytest.mark.parametrize("can_join", [True, False], ids=["joined", "apart"])


@each_stop
@joined_or_apart
def test_a_sentence_unproven_by_one_prefix_has_the_output_of_the_full_beam(
    stop: Stop, can_join: bool
) -> None:
    result = search(stop, can_join).garden_path
    assert result.hypotheses[0].tokens == (3,)
    assert result.certificate.level == "optimal"


@each_stop
@joined_or_apart
def test_the_neighbour_of_a_sentence_that_starts_again_goes_on(stop: Stop, can_join: bool) -> None:
    result = search(stop, can_join).longer
    assert result.hypotheses[0].tokens == (2, 3, 4)
    assert result.certificate.level == "exhaustive"


# Work for the garden path. A search of one prefix computes two rows, of the start and of (2,), and
# then can prove nothing; one of two prefixes computes those of the start, (2,) and (3,). Three
# tokens are possible after the start, two after (2,), and the end after (3,).
ROWS_OF_ONE, ROWS_OF_TWO = 2, 3
SUPPORT_OF_ONE, SUPPORT_OF_TWO = 3 + 2, 3 + 2 + 1


@pytest.mark.parametrize(
    ("stop", "rows", "support"),
    [
        ("exhaustive", ROWS_OF_ONE + ROWS_OF_TWO, SUPPORT_OF_ONE + SUPPORT_OF_TWO),
        ("optimal", ROWS_OF_ONE + ROWS_OF_TWO, SUPPORT_OF_ONE + SUPPORT_OF_TWO),
        # It needs no proof, so it begins with the full beam.
        ("first", ROWS_OF_TWO, SUPPORT_OF_TWO),
    ],
)
@joined_or_apart
def test_the_first_try_counts_as_work(stop: Stop, rows: int, support: int, can_join: bool) -> None:
    result = search(stop, can_join).garden_path
    assert (result.rows, result.support) == (rows, support)


@each_stop
@joined_or_apart
def test_the_work_of_all_sentences_is_that_of_the_stepper(stop: Stop, can_join: bool) -> None:
    stepper, garden_path, longer = search(stop, can_join)
    assert garden_path.rows + longer.rows == stepper.rows


@pytest.mark.parametrize(
    ("forced", "regex"), [((6,), None), ((), "[^5] .*")], ids=["prefix", "constraint"]
)
def test_a_sentence_that_starts_again_has_the_same_request(
    forced: Tokens, regex: str | None
) -> None:
    model = {(): {6: 0.5, 5: 0.5}, (6,): {2: 0.5, 3: 0.4, 4: 0.1}, (6, 2): {4: 0.5, 5: 0.5}}
    stepper = TableStepper(7)
    stepper.dense = True
    automaton = None
    if regex is not None:
        automaton = compiled(parse_expression(regex), [2, 3, 4, 5, 6], EOS)
    (result,) = beam_search(
        stepper, [Fixed(model)], SearchConfig(beam_size=2), [forced], automata=[automaton]
    )
    assert result.hypotheses[0].tokens == (6, 3)
    assert result.certificate.excluded == pytest.approx(0.5)
    with_one_prefix, with_two = 2 + 1, 4
    assert result.rows == with_one_prefix + with_two
