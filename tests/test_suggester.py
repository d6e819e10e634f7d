"""`onmt_entmax.suggest`: which tokens may follow a prefix, and with which probabilities."""

import math
from collections.abc import Callable

import pytest
import torch

from onmt_entmax import suggest
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import Example, make_batch
from tests.reversing_model import with_smaller_scores, with_softmax_output

SOURCE = "a b c"


def next_tokens(model: LoadedModel, prefix: str) -> dict[str, float]:
    """Return the possible tokens after a prefix, by teacher forcing as in training."""
    source, target = model.vocabularies
    example = Example(source.encode(SOURCE.split()), target.encode(prefix.split()), 0)
    with torch.no_grad():
        hidden, _ = model.model.hidden_states(make_batch([example], model.vocabularies))
        last = model.model.generator.log_probs(hidden)[-1].exp().tolist()
    named = zip(target.tokens, last, strict=True)
    # A softmax gives probability to padding and the start symbol, too, which no output has.
    never = {target.tokens[target.pad], target.tokens[target.bos]}
    return {token: prob for token, prob in named if prob > 0 and token not in never}


@pytest.mark.parametrize("prefix", ["", "c b"])
@pytest.mark.parametrize(
    "changed",
    [pytest.param(with_smaller_scores, id="sparse"), pytest.param(with_softmax_output, id="dense")],
)
def test_every_possible_next_token_and_no_other_is_listed(
    reversing_model: LoadedModel, changed: Callable[[LoadedModel], LoadedModel], prefix: str
) -> None:
    model = changed(reversing_model)
    continuations = suggest(model, SOURCE, prefix).continuations
    listed = {continuation.token: continuation.prob for continuation in continuations}
    assert len(listed) > 1
    assert listed == pytest.approx(next_tokens(model, prefix), abs=1e-6)


def test_a_prefix_has_the_product_of_its_tokens_probabilities(
    reversing_model: LoadedModel,
) -> None:
    model = with_smaller_scores(reversing_model)
    expected = next_tokens(model, "")["c"] * next_tokens(model, "c")["b"]
    assert math.exp(suggest(model, SOURCE, "c b").log_prob) == pytest.approx(expected, abs=1e-6)


def test_the_first_token_that_the_model_excludes_has_its_position(
    reversing_model: LoadedModel,
) -> None:
    """The reversed source is `c b a`, and `c a` is impossible."""
    assert suggest(reversing_model, SOURCE, "c a").excluded_at == 1


def test_the_tokens_that_must_follow_are_the_completion(reversing_model: LoadedModel) -> None:
    assert suggest(reversing_model, SOURCE, "c").completion == ("b", "a")
    assert suggest(reversing_model, SOURCE, "c").complete
