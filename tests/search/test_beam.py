"""Beam search and its certificate against brute-force enumeration."""

import math
from typing import Any

import pytest
import torch

from onmt_entmax.search import (
    EnsembleStepper,
    Request,
    SearchConfig,
    SearchResult,
    Step,
    beam_search,
    stream_search,
)
from onmt_entmax.search.beam_steps import BeamSearch
from onmt_entmax.search.expression_parser import parse_expression
from onmt_entmax.search.state import SearchState
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.expressions import compiled
from tests.search.tables import EOS, Fixed, Table, TableStepper, ensemble_of

ALPHAS = (1.0, 1.2, 1.5, 2.0)


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_batch_gives_what_its_sentences_give_alone(n_best: int) -> None:
    tables = [Table(seed, ALPHAS[seed % 4]) for seed in range(60)]
    config = SearchConfig(4, n_best, 5)
    together = beam_search(TableStepper(), tables, config)
    assert together == [beam_search(TableStepper(), [table], config)[0] for table in tables]


def test_sentences_may_join_a_search_that_is_under_way() -> None:
    tables = [Table(seed, ALPHAS[seed % 4]) for seed in range(40)]
    config = SearchConfig(3, 2, 6)
    search = BeamSearch(TableStepper(), config)
    results: dict[int, SearchResult] = {}
    for table in tables:
        search.admit(Request([table]))
        results.update(search.advance())
    while len(search):
        results.update(search.advance())
    assert [results[i] for i in range(40)] == beam_search(TableStepper(), tables, config)


ENSEMBLES = [
    [Table(seed + 1000 * member, 2.0 if seed % 2 else 1.3, 4) for member in range(3)]
    for seed in range(100)
]


def test_an_ensemble_averages_probabilities_of_tokens() -> None:
    for models in ENSEMBLES:
        sequences = enumerate_support(ensemble_of(models), [None], 3, 1000).sequences
        if not sequences:  # every end was excluded
            continue
        best = max(sequences, key=sequences.__getitem__)
        expected = 0.0
        for position, token in enumerate([*best, EOS]):
            rows = [model.log_probs(best[:position]) for model in models]
            expected += math.log(sum(math.exp(row[token]) for row in rows) / 3)
        assert sequences[best] == pytest.approx(expected)


def test_certificates_of_ensembles_are_about_the_union_of_supports() -> None:
    counts = {"one": 0, "several": 0}
    for number, models in enumerate(ENSEMBLES):
        stepper = ensemble_of(models)
        support = enumerate_support(stepper, [None], 3, 1000)
        if not support.sequences:
            continue
        config = SearchConfig(number % 10 + 1, n_best=0, max_length=3)
        (result,) = beam_search(stepper, [None], config)
        check(result, support, config)
        counts["one" if result.finished == 1 else "several"] += 1
    assert min(counts.values()) > 0


def test_attention_belongs_to_the_hypothesis() -> None:
    tables = [Table(seed, 1.5) for seed in range(20)]
    for result in beam_search(TableStepper(attention=True), tables, SearchConfig(3, 0, 5)):
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


def test_members_of_an_ensemble_must_share_their_vocabulary() -> None:
    with pytest.raises(ValueError, match="same target vocabulary"):
        EnsembleStepper([TableStepper(4), TableStepper(5)])


@pytest.mark.parametrize("stop", ["exhaustive", "optimal", "first"])
@pytest.mark.parametrize("can_join", [True, False])
def test_a_sentence_unproven_by_one_prefix_starts_again_with_the_full_beam(
    stop: Any, can_join: bool
) -> None:
    # The most probable first token leads to less probable outputs.
    garden_path = Fixed({(): {2: 0.5, 3: 0.4, 4: 0.1}, (2,): {4: 0.5, 5: 0.5}})
    longer = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {4: 1.0}})
    stepper = TableStepper(7)
    stepper.dense, stepper.can_join = True, can_join
    results = beam_search(stepper, [garden_path, longer], SearchConfig(2, stop=stop))
    assert [result.hypotheses[0].tokens for result in results] == [(3,), (2, 3, 4)]
    assert [result.certificate.level for result in results] == ["optimal", "exhaustive"]
    assert sum(result.rows for result in results) == stepper.rows, "the first try is counted too"
    # One prefix: the start and (2,), then nothing can be proven. Two: the start, (2,) and (3,).
    assert results[0].rows == (3 if stop == "first" else 2 + 3)


@pytest.mark.parametrize(
    ("forced", "regex"), [((6,), None), ((), "[^5] .*")], ids=["prefix", "constraint"]
)
def test_a_sentence_that_starts_again_has_the_same_request(forced: Any, regex: Any) -> None:
    model = {(): {6: 0.5, 5: 0.5}, (6,): {2: 0.5, 3: 0.4, 4: 0.1}, (6, 2): {4: 0.5, 5: 0.5}}
    stepper = TableStepper(7)
    stepper.dense = True
    automaton = None
    if regex is not None:
        automaton = compiled(parse_expression(regex), [2, 3, 4, 5, 6], EOS)
    (result,) = beam_search(stepper, [Fixed(model)], SearchConfig(2), [forced], [automaton])
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
    """Those of at most `rows` sentences, and of one more batch."""
    model, beam_size, batch_size = Watched(), 3, 2
    requests = [Request([Table(2 * i, 1.2), Table(2 * i + 1, 1.2)]) for i in range(15)]
    config = SearchConfig(beam_size, max_length=6)
    assert len(dict(stream_search(model, requests, config, rows))) == 30
    assert rows < model.most_alive <= beam_size * (rows + batch_size)


@pytest.mark.parametrize("order", [1, -1])
def test_an_ensemble_is_as_dense_and_as_rigid_as_one_member(order: int) -> None:
    """The union with a softmax has every token; a Transformer cannot join sentences."""
    members = [TableStepper(), TableStepper()]
    members[0].dense, members[1].can_join = True, False
    ensemble = EnsembleStepper(members[::order])
    assert (ensemble.dense, ensemble.can_join) == (True, False)
    assert not EnsembleStepper(members[1:]).dense
    assert EnsembleStepper(members[:1]).can_join


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_the_bound_is_about_tokens_that_are_no_candidates_too(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that lists fewer candidates proves less, and nothing wrong."""

    class Dense(TableStepper):  # of a support, all tokens are candidates
        def step(self, state: Any, tokens: torch.Tensor) -> Step:
            step = super().step(state, tokens)
            return Step(step.log_probs, None, step.state)

    expand = SearchState.expand
    monkeypatch.setattr(SearchState, "expand", lambda self, width: expand(self, 1))
    config = SearchConfig(4, 0, 4)
    for table in (Table(seed, alpha, vocabulary_size=6) for seed in range(60)):
        (result,) = beam_search(Dense(6), [table], config)
        check(result, enumerate_support(TableStepper(6), [table], 4, 10**5), config)
