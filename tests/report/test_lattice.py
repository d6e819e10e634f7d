"""The lattice of hypotheses, on models written by hand and on random ones."""

import math

import pytest
import torch

from onmt_entmax.report.lattice import Lattice, Node, build_lattice
from onmt_entmax.search import SearchConfig, beam_search
from tests.search.networks import DECODERS, network, sentences, stepper
from tests.search.tables import BOS, DRAW, EOS, D, E, Fixed, N, TableStepper, W


def listed(node: Node) -> dict[int, float]:
    return {branch.token: math.exp(branch.log_prob) for branch in node.branches}


def draw(hypotheses: list[tuple[int, ...]], **keywords: object) -> Lattice:
    return build_lattice(TableStepper(7), [DRAW], hypotheses, **keywords)


def test_nodes_are_the_prefixes_with_all_their_next_tokens() -> None:
    lattice = draw([(W, E, D), (W, N)])
    assert [node.prefix for node in lattice.nodes] == [(), (W,), (W, N), (W, E), (W, E, D)]
    probabilities = [math.exp(node.log_prob) for node in lattice.nodes]
    assert probabilities == pytest.approx([1, 1, 0.32, 0.6, 0.45])
    assert [listed(node) for node in lattice.nodes] == [
        pytest.approx(DRAW.model[node.prefix]) for node in lattice.nodes
    ]
    assert [node.support for node in lattice.nodes] == [1, 3, 1, 2, 1]
    assert all(node.others == node.others_count == 0 for node in lattice.nodes)


def test_a_hypothesis_that_the_model_excludes_is_shown_as_impossible() -> None:
    table = Fixed({(): {W: 1.0}, (W,): {EOS: 1.0}, (N,): {EOS: 1.0}})
    lattice = build_lattice(TableStepper(7), [table], [(N,), (W,)])
    assert [(b.token, b.log_prob) for b in lattice.nodes[0].branches] == [(W, 0), (N, -math.inf)]
    assert lattice.nodes[0].support == 1
    assert lattice.log_probs() == {0: -math.inf, 1: 0}


def test_beyond_the_limit_tokens_are_summed_but_hypotheses_are_listed() -> None:
    lattice = draw([(W,)], limit=2)
    assert listed(lattice.nodes[1]) == pytest.approx({E: 0.6, EOS: 0.08})
    assert lattice.nodes[1].others == pytest.approx(0.32)
    assert (lattice.nodes[1].others_count, lattice.nodes[1].support) == (1, 3)
    assert listed(draw([(W,)], limit=0).nodes[1]) == pytest.approx({EOS: 0.08})


def test_a_dense_model_lists_what_is_likely_enough_and_symbols_of_no_string_never() -> None:
    table = Fixed({(): {BOS: 0.05, EOS: 0.0009, W: 0.7, N: 0.2482, E: 0.0009}})
    stepper = TableStepper(7)
    stepper.dense = True
    (root,) = build_lattice(stepper, [table], [()]).nodes
    assert listed(root) == pytest.approx({W: 0.7, N: 0.2482, EOS: 0.0009})
    assert root.others == pytest.approx(0.05 + 0.0009)
    assert (root.others_count, root.support) == (2, 5)
    stepper.dense = False
    (root,) = build_lattice(stepper, [table], [()]).nodes
    assert listed(root) == pytest.approx({W: 0.7, N: 0.2482, EOS: 0.0009, E: 0.0009})


@pytest.mark.parametrize("kind", DECODERS)
def test_a_lattice_agrees_with_the_search_that_found_its_hypotheses(kind: str) -> None:
    model = stepper(network(kind, 1.5, 8), attention=True)
    compared = 0
    for batch in sentences(4):
        (result,) = beam_search(model, batch, SearchConfig(4, 4, 8))
        if not result.hypotheses:
            continue
        lattice = build_lattice(model, batch, [h.tokens for h in result.hypotheses])
        for i, hypothesis in enumerate(result.hypotheses):
            assert lattice.log_probs()[i] == pytest.approx(hypothesis.log_prob, abs=1e-5)
            rows = [
                n.attention for n in lattice.nodes if n.prefix == hypothesis.tokens[: len(n.prefix)]
            ]
            torch.testing.assert_close(
                torch.tensor(rows), hypothesis.attention.float(), atol=1e-5, rtol=0
            )
            compared += 1
    assert compared > 3
