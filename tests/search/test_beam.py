"""Beam search: batches, streams, a first beam of one, and what its bound is about."""

from typing import Any, NamedTuple

import pytest
import torch

from onmt_entmax.search import (
    Request,
    SearchConfig,
    SearchResult,
    Step,
    beam_search,
    stream_search,
)
from onmt_entmax.search.beam_steps import BeamSearch
from onmt_entmax.search.config import Stop
from onmt_entmax.search.expression_parser import parse_expression
from onmt_entmax.search.state import SearchState
from tests.search.automata import compiled
from tests.search.checks import check
from tests.search.enumeration import Tokens, enumerate_support
from tests.search.tables import EOS, Fixed, Table, TableStepper

ALPHAS = (1.0, 1.2, 1.5, 2.0)


def random_tables(count: int) -> list[Table]:
    """Return tables of different alphas."""
    return [Table(seed, ALPHAS[seed % len(ALPHAS)]) for seed in range(count)]


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_batch_gives_what_its_sentences_give_alone(n_best: int) -> None:
    tables = random_tables(60)
    config = SearchConfig(beam_size=4, n_best=n_best, max_length=5)
    together = beam_search(TableStepper(), tables, config)
    assert together == [beam_search(TableStepper(), [table], config)[0] for table in tables]


def test_sentences_may_join_a_search_that_is_under_way() -> None:
    tables = random_tables(40)
    config = SearchConfig(beam_size=3, n_best=2, max_length=6)
    search = BeamSearch(TableStepper(), config)
    results: dict[int, SearchResult] = {}
    for table in tables:
        search.admit(Request([table]))
        results.update(search.advance())
    while len(search):
        results.update(search.advance())
    assert [results[i] for i in range(len(tables))] == beam_search(TableStepper(), tables, config)


def test_attention_belongs_to_the_hypothesis() -> None:
    tables = [Table(seed, 1.5) for seed in range(20)]
    for result in beam_search(
        TableStepper(attention=True), tables, SearchConfig(beam_size=3, n_best=0, max_length=5)
    ):
        for hypothesis in result.hypotheses:
            prefixes = [hypothesis.tokens[:i] for i in range(len(hypothesis.tokens) + 1)]
            expected = [[sum(prefix) + 10.0 * len(prefix)] for prefix in prefixes]
            assert hypothesis.attention is not None
            assert hypothesis.attention.tolist() == expected


@pytest.mark.parametrize(
    "wrong", [{"beam_size": 0}, {"n_best": -1}, {"max_length": -1}, {"stop": "never"}]
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SearchConfig(**wrong)


# --- sentences that start again with the full beam -------------------------------------------


class GardenPath(NamedTuple):
    """Searches of a sentence that one prefix cannot prove, and of a longer one that it can.

    The most probable first token of the former leads to less probable outputs.
    """

    stepper: TableStepper
    stop: Stop
    unproven: SearchResult
    longer: SearchResult


@pytest.fixture(params=["exhaustive", "optimal", "first"])
def stop(request: pytest.FixtureRequest) -> Stop:
    stop: Stop = request.param
    return stop


@pytest.fixture(params=[True, False], ids=["joined", "apart"])
def garden_path(request: pytest.FixtureRequest, stop: Stop) -> GardenPath:
    unproven = Fixed({(): {2: 0.5, 3: 0.4, 4: 0.1}, (2,): {4: 0.5, 5: 0.5}})
    longer = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {4: 1.0}})
    stepper = TableStepper(7)
    stepper.dense, stepper.can_join = True, request.param
    config = SearchConfig(beam_size=2, stop=stop)
    return GardenPath(stepper, stop, *beam_search(stepper, [unproven, longer], config))


def test_a_sentence_unproven_by_one_prefix_has_the_output_of_the_full_beam(
    garden_path: GardenPath,
) -> None:
    assert garden_path.unproven.hypotheses[0].tokens == (3,)
    assert garden_path.unproven.certificate.level == "optimal"


def test_its_neighbour_goes_on(garden_path: GardenPath) -> None:
    assert garden_path.longer.hypotheses[0].tokens == (2, 3, 4)
    assert garden_path.longer.certificate.level == "exhaustive"


def test_the_first_try_counts_as_work(garden_path: GardenPath) -> None:
    """`-stop first` needs no proof, so it begins with the full beam."""
    stepper, stop, unproven, longer = garden_path
    assert unproven.rows + longer.rows == stepper.rows
    # One prefix: the start and (2,), then nothing can be proven. Two: the start, (2,) and (3,).
    assert unproven.rows == (3 if stop == "first" else 2 + 3)
    # Tokens of positive probability: 3 after the start, 2 after (2,), the end after (3,).
    full_beam = 3 + 2 + 1
    assert unproven.support == (full_beam if stop == "first" else 3 + 2 + full_beam)


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
    assert result.rows == 2 + 1 + 4, "with one prefix, then with two"


class Watched(TableStepper):
    """Notes the most prefixes that were alive at once."""

    most_alive = 0

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        self.most_alive = max(self.most_alive, len(state))
        return super().step(state, tokens)


@pytest.mark.parametrize("rows", [1, 6])
def test_a_stream_keeps_few_prefixes_alive(rows: int) -> None:
    """Prefixes of at most `rows` sentences are alive, and those of one more batch."""
    model = Watched()
    beam_size = 3
    batch_size = 2
    requests = [Request([Table(2 * i, 1.2), Table(2 * i + 1, 1.2)]) for i in range(15)]
    config = SearchConfig(beam_size=beam_size, max_length=6)
    assert len(dict(stream_search(model, requests, config, rows))) == 30
    assert rows < model.most_alive <= beam_size * (rows + batch_size)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_the_bound_is_about_tokens_that_are_no_candidates_too(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that lists fewer candidates proves less, and nothing wrong."""

    class Dense(TableStepper):  # of a support, all tokens are candidates
        def step(self, state: Any, tokens: torch.Tensor) -> Step:
            step = super().step(state, tokens)
            return Step(step.log_probs, attention=None, state=step.state)

    expand = SearchState.expand
    monkeypatch.setattr(SearchState, "expand", lambda self, width: expand(self, 1))
    config = SearchConfig(beam_size=4, n_best=0, max_length=4)
    for table in (Table(seed, alpha, vocabulary_size=6) for seed in range(60)):
        (result,) = beam_search(Dense(6), [table], config)
        check(result, enumerate_support(TableStepper(6), [table], 4), config)
