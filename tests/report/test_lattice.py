"""The lattice of hypotheses, on models written by hand and on random ones."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from onmt_entmax.report.lattice import Lattice, Node, build_lattice
from onmt_entmax.search import SearchConfig, beam_search
from onmt_entmax.search.certificate import Hypothesis
from tests.search.enumeration import Tokens
from tests.search.networks import DECODERS, network, sentences, stepper
from tests.search.table_steppers import TableStepper
from tests.search.tables import BOS, DRAW, EOS, D, E, Fixed, N, W


def branches_of(node: Node) -> dict[int, float]:
    """Return the probabilities of the listed tokens."""
    return {branch.token: math.exp(branch.log_prob) for branch in node.branches}


def draw(hypotheses: list[Tokens], limit: int = sys.maxsize) -> Lattice:
    """Return the lattice of hypotheses of `DRAW`; `tests.search.tables` has its probabilities."""
    return build_lattice(TableStepper(7), [DRAW], hypotheses, limit)


# --- a model written by hand ---


@pytest.fixture
def lattice() -> Lattice:
    """The lattice of two hypotheses of one word."""
    return draw([(W, E, D), (W, N)])


def test_nodes_are_the_prefixes_of_the_hypotheses(lattice: Lattice) -> None:
    assert [node.prefix for node in lattice.nodes] == [(), (W,), (W, N), (W, E), (W, E, D)]


def test_nodes_have_the_probabilities_of_their_prefixes(lattice: Lattice) -> None:
    probabilities = [math.exp(node.log_prob) for node in lattice.nodes]
    assert probabilities == pytest.approx([1, 1, 0.32, 0.6, 0.45])


def test_nodes_list_all_their_next_tokens(lattice: Lattice) -> None:
    for node in lattice.nodes:
        assert branches_of(node) == pytest.approx(DRAW.model[node.prefix])


def test_without_a_limit_no_token_is_summed(lattice: Lattice) -> None:
    assert {(node.others, node.others_count) for node in lattice.nodes} == {(0, 0)}


def test_the_support_of_a_node_counts_its_next_tokens(lattice: Lattice) -> None:
    assert [node.support for node in lattice.nodes] == [1, 3, 1, 2, 1]


def test_a_hypothesis_that_the_model_excludes_is_shown_as_impossible() -> None:
    table = Fixed({(): {W: 1.0}, (W,): {EOS: 1.0}, (N,): {EOS: 1.0}})
    lattice = build_lattice(TableStepper(7), [table], [(N,), (W,)])
    assert [(b.token, b.log_prob) for b in lattice.nodes[0].branches] == [(W, 0), (N, -math.inf)]
    assert lattice.nodes[0].support == 1
    assert lattice.token_log_probs() == {0: (-math.inf, 0), 1: (0, 0)}


def test_tokens_of_hypotheses_have_log_probabilities_with_the_end_symbol_last(
    lattice: Lattice,
) -> None:
    probs = {
        hypothesis: [math.exp(log_prob) for log_prob in log_probs]
        for hypothesis, log_probs in lattice.token_log_probs().items()
    }
    assert probs == {
        0: pytest.approx([1, 0.6, 0.75, 1]),  # w e d, end
        1: pytest.approx([1, 0.32, 1]),  # w n, end
    }


# --- a limit of listed tokens ---


def test_beyond_the_limit_tokens_are_summed() -> None:
    _, node = draw([(W,)], limit=2).nodes
    assert branches_of(node) == pytest.approx({E: 0.6, EOS: 0.08})
    assert node.others == pytest.approx(0.32)
    assert (node.others_count, node.support) == (1, 3)


def test_hypotheses_are_listed_beyond_the_limit() -> None:
    _, node = draw([(W,)], limit=0).nodes
    assert branches_of(node) == pytest.approx({EOS: 0.08})


def root_of(*, dense: bool) -> Node:
    """Return the first node of a model with two rare tokens: E, and EOS, which ends the hypothesis.

    They are less probable than 0.001. The model may also write the start symbol, as softmax does.
    """
    table = Fixed({(): {BOS: 0.05, EOS: 0.0009, W: 0.7, N: 0.2482, E: 0.0009}})
    (root,) = build_lattice(TableStepper(7, dense=dense), [table], [()]).nodes
    return root


def test_the_lattice_of_a_sparse_model_lists_rare_tokens_but_no_start_symbol() -> None:
    root = root_of(dense=False)
    assert branches_of(root) == pytest.approx({W: 0.7, N: 0.2482, EOS: 0.0009, E: 0.0009})


def test_the_lattice_of_a_dense_model_lists_likely_tokens_and_those_of_hypotheses() -> None:
    """The start symbol and E are summed."""
    root = root_of(dense=True)
    assert branches_of(root) == pytest.approx({W: 0.7, N: 0.2482, EOS: 0.0009})
    assert root.others == pytest.approx(0.05 + 0.0009)
    assert (root.others_count, root.support) == (2, 5)


# --- random models ---


@dataclass
class SearchedSentence:
    """The hypotheses of a sentence, and their lattice."""

    hypotheses: Sequence[Hypothesis]
    lattice: Lattice


@pytest.fixture(scope="module", params=DECODERS)
def searched(request: pytest.FixtureRequest) -> list[SearchedSentence]:
    """The searches of sentences for which a random model has finished outputs."""
    model = stepper(network(request.param, 1.5, 8), attention=True)
    results = []
    for batch in sentences(4):
        (found,) = beam_search(model, batch, SearchConfig(beam_size=4, n_best=4, max_length=8))
        if found.hypotheses:
            lattice = build_lattice(model, batch, [h.tokens for h in found.hypotheses])
            results.append(SearchedSentence(found.hypotheses, lattice))
    assert sum(len(result.hypotheses) for result in results) > 3
    return results


def test_a_lattice_agrees_with_the_search_that_found_its_hypotheses(
    searched: list[SearchedSentence],
) -> None:
    for sentence in searched:
        expected = {n: hypothesis.log_prob for n, hypothesis in enumerate(sentence.hypotheses)}
        of_tokens = sentence.lattice.token_log_probs()
        sums = {n: sum(log_probs) for n, log_probs in of_tokens.items()}
        assert sums == pytest.approx(expected, abs=1e-5)


def test_the_attention_of_a_lattice_is_that_of_its_hypotheses(
    searched: list[SearchedSentence],
) -> None:
    for sentence in searched:
        attention = {node.prefix: node.attention for node in sentence.lattice.nodes}
        for hypothesis in sentence.hypotheses:
            tokens = hypothesis.tokens
            rows = [attention[tokens[:length]] for length in range(len(tokens) + 1)]
            expected = hypothesis.attention.float()
            torch.testing.assert_close(torch.tensor(rows), expected, atol=1e-5, rtol=0)
