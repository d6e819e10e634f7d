"""Networks whose tokens get other ids, as the members of an ensemble need, compute the same."""

from dataclasses import replace
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.reordering import with_tokens_in_order
from tests.models import CONFIGS, JOINT_VOCABULARIES, SHARED_EMBEDDINGS, VOCABULARIES

TARGETS = ("zw", "x")


class Case(NamedTuple):
    """A configuration with vocabularies that fit it, and the sources of two sentences."""

    config: ModelConfig
    vocabularies: Vocabularies
    sources: tuple[str, str]


CASES = {
    **{name: Case(config, VOCABULARIES, ("cde", "fb")) for name, config in CONFIGS.items()},
    "shared embeddings": Case(SHARED_EMBEDDINGS, JOINT_VOCABULARIES, ("uvw", "xz")),
    "target embeddings tied to the output": Case(
        replace(SHARED_EMBEDDINGS, share_embeddings=False), VOCABULARIES, ("cde", "fb")
    ),
}


class Network(NamedTuple):
    model: SparseNMTModel
    vocabularies: Vocabularies

    def scores(self, sources: tuple[str, str]) -> torch.Tensor:
        """Return scores ``(target positions, tokens)``, with tokens as in `VOCABULARIES`."""
        encode_source, encode_target = (side.encode for side in self.vocabularies)
        examples = [
            Example(encode_source(source), encode_target(target), index)
            for index, (source, target) in enumerate(zip(sources, TARGETS, strict=True))
        ]
        hidden, _ = self.model.hidden_states(make_batch(examples, self.vocabularies))
        return self.model.generator.scores(hidden)[:, encode_target(VOCABULARIES.target.tokens)]


def in_another_order(vocabulary: Vocabulary) -> Vocabulary:
    """Return a vocabulary with its first token that is not special at the end.

    If two tokens just changed places, an order that is applied the wrong way round would not show.
    """
    tokens, first = vocabulary.tokens, len(TARGET_SPECIALS)
    return Vocabulary((*tokens[:first], *tokens[first + 1 :], tokens[first]))


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def network(case: Case) -> Network:
    return Network(build_model(case.config, case.vocabularies).eval(), case.vocabularies)


@pytest.fixture
def reordered(case: Case, network: Network) -> Network:
    vocabularies = Vocabularies(*map(in_another_order, case.vocabularies))
    model = with_tokens_in_order(network.model, case.config, case.vocabularies, vocabularies)
    return Network(model, vocabularies)


def test_scores_of_the_same_sentences_are_equal(
    case: Case, network: Network, reordered: Network
) -> None:
    torch.testing.assert_close(reordered.scores(case.sources), network.scores(case.sources))


def test_shared_weights_stay_shared(network: Network, reordered: Network) -> None:
    assert count_parameters(reordered.model) == count_parameters(network.model)
