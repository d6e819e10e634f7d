"""With a softmax, a search follows one prefix first and starts again if that proves nothing.

One prefix is cheap, and mostly proves its result; the second search has the full beam.
"""

from typing import NamedTuple, get_args

import pytest

from onmt_entmax.search import SearchConfig, SearchResult, beam_search
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.config import Stop
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.automata import compiled
from tests.search.enumeration import Tokens
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed

# The most probable first token leads to less probable outputs: (2, 4) and (2, 5) have 0.25 each,
# and (3,) has 0.4. A search of one prefix follows (2,), and then cannot prove its output.
GARDEN_PATH = Fixed({(): {2: 0.5, 3: 0.4, 4: 0.1}, (2,): {4: 0.5, 5: 0.5}})
# The other sentence of the batch has one output, which one prefix proves after more steps.
LONGER = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {4: 1.0}})


class Searched(NamedTuple):
    """The results of a batch of both sentences, and the stepper, which counted the work."""

    stepper: TableStepper
    garden_path: SearchResult
    longer: SearchResult


def search(stop: Stop, can_join: bool) -> Searched:
    """Search both sentences in one batch with a beam of two.

    Args:
        stop: when the search of a sentence may end.
        can_join: whether a sentence that starts again can join one that is further on.
    """
    stepper = TableStepper(vocabulary_size=7, dense=True, can_join=can_join)
    config = SearchConfig(beam_size=2, stop=stop)
    return Searched(stepper, *beam_search(stepper, [GARDEN_PATH, LONGER], config))


each_stop = pytest.mark.parametrize("stop", get_args(Stop))
joined_or_apart = pytest.mark.parametrize("can_join", [True, False], ids=["joined", "apart"])


@each_stop
@joined_or_apart
def test_a_sentence_that_one_prefix_cannot_prove_has_the_output_of_the_full_beam(
    stop: Stop, can_join: bool
) -> None:
    result = search(stop, can_join).garden_path
    assert result.hypotheses[0].tokens == (3,)
    assert result.certificate.level == "optimal"


@each_stop
@joined_or_apart
def test_the_other_sentence_of_the_batch_keeps_its_output(stop: Stop, can_join: bool) -> None:
    result = search(stop, can_join).longer
    assert result.hypotheses[0].tokens == (2, 3, 4)
    assert result.certificate.level == "exhaustive"


TWO_OUTPUTS = Fixed({(): {2: 0.7, 3: 0.3}})


@pytest.mark.parametrize(("n_best", "level"), [(1, "optimal"), (2, "exhaustive")])
def test_a_search_for_one_output_leaves_out_others_though_there_are_few(
    n_best: int, level: str
) -> None:
    """One prefix proves the most probable output, and the search ends there."""
    config = SearchConfig(beam_size=2, n_best=n_best)
    (result,) = beam_search(TableStepper(7, dense=True), [TWO_OUTPUTS], config)
    assert result.certificate.level == level


# --- work ------------------------------------------------------------------------------------

# For the garden path, a search of one prefix computes two rows, those of the start and of (2,), and
# then can prove nothing; one of two prefixes computes those of the start, (2,) and (3,). Three
# tokens are possible after the start, two after (2,), and one, the end, after (3,).
ROWS_OF_ONE, ROWS_OF_TWO = 2, 3
SUPPORT_OF_ONE, SUPPORT_OF_TWO = 3 + 2, 3 + 2 + 1


@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
@joined_or_apart
def test_the_first_try_counts_as_work(stop: Stop, can_join: bool) -> None:
    result = search(stop, can_join).garden_path
    assert result.rows == ROWS_OF_ONE + ROWS_OF_TWO
    assert result.support == SUPPORT_OF_ONE + SUPPORT_OF_TWO


@joined_or_apart
def test_a_search_that_stops_at_the_first_output_begins_with_the_full_beam(can_join: bool) -> None:
    """It needs no proof."""
    result = search("first", can_join).garden_path
    assert result.rows == ROWS_OF_TWO
    assert result.support == SUPPORT_OF_TWO


@each_stop
@joined_or_apart
def test_the_work_of_all_sentences_is_that_of_the_stepper(stop: Stop, can_join: bool) -> None:
    stepper, garden_path, longer = search(stop, can_join)
    assert garden_path.rows + longer.rows == stepper.rows


# --- requests --------------------------------------------------------------------------------

# The garden path after (6,). Token 5, of probability 0.5, is excluded as the first one: by a forced
# prefix, or by a constraint.
LATE_GARDEN_PATH = Fixed(
    {(): {6: 0.5, 5: 0.5}, (6,): {2: 0.5, 3: 0.4, 4: 0.1}, (6, 2): {4: 0.5, 5: 0.5}}
)
# One prefix: the start, (6,) and (6, 2). Two: these and (6, 3).
LATE_ROWS_OF_ONE, LATE_ROWS_OF_TWO = 3, 4
NOT_5_FIRST = compiled(parse_expression("[^5] .*"), [2, 3, 4, 5, 6], EOS)

each_request = pytest.mark.parametrize(
    ("forced", "automaton"),
    [
        pytest.param((6,), None, id="forced prefix"),
        pytest.param((), NOT_5_FIRST, id="constraint"),
    ],
)


def search_again(forced: Tokens, automaton: Automaton | None) -> SearchResult:
    """Search the late garden path with a beam of two; it must start again."""
    (result,) = beam_search(
        TableStepper(vocabulary_size=7, dense=True),
        [LATE_GARDEN_PATH],
        SearchConfig(beam_size=2),
        prefixes=[forced],
        automata=[automaton],
    )
    assert result.rows == LATE_ROWS_OF_ONE + LATE_ROWS_OF_TWO
    return result


@each_request
def test_a_sentence_that_starts_again_keeps_its_request(
    forced: Tokens, automaton: Automaton | None
) -> None:
    assert search_again(forced, automaton).hypotheses[0].tokens == (6, 3)


@each_request
def test_what_a_request_excludes_counts_once_if_a_sentence_starts_again(
    forced: Tokens, automaton: Automaton | None
) -> None:
    assert search_again(forced, automaton).certificate.excluded == pytest.approx(0.5)
