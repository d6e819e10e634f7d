"""What `Translator` promises, of the committed model of letters, which reverses its source."""

import copy
import pickle
import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.search import LineConstraints, Sampling, SearchTask, is_settled
from tests.commands import ROOT

LINES = ["a b c", "f e d b a c", "b b a", "a a a a a a a a"]


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folder has no checksums
        return load(ROOT / "tests" / "data" / "model_1.0")


def uncertain(model: LoadedModel) -> LoadedModel:
    """Return the model with softmax of small scores, so that many outputs are possible."""
    other = copy.deepcopy(model.model)
    with torch.no_grad():
        other.generator.weight /= 3
    other.generator.alpha = 1.0
    return replace(model, model=other)


def refused(model: LoadedModel, line: str = "a b c", task: Any = None, **options: Any) -> str:
    """Return the error of a translation."""
    calls = {name: options.pop(name) for name in ("prefixes", "constraints") if name in options}
    with pytest.raises(UserError) as caught:
        next(Translator([model], task or SearchTask(), **options).answers([line], **calls))
    return str(caught.value)


def test_requests_that_do_not_fit_are_refused(model: LoadedModel) -> None:
    backwards = replace(model, task=replace(model.task, right_to_left=True))
    short, drawn = SearchTask(SearchConfig(max_length=2)), SearchTask(sampling=Sampling(topk=2))
    assert "cannot begin with a prefix" in refused(backwards, prefixes=["c"])
    assert "3 tokens, but max_length is 2" in refused(model, task=short, prefixes=["c b a"])
    assert "'x' is not in the target" in refused(model, prefixes=["c x"])
    assert "not with sampling" in refused(model, task=drawn, constraints=[LineConstraints()])
    assert "not with sampling" in refused(model, task=drawn, unknown={})
    assert "not with sampling" in refused(model, task=drawn, align=True)
    blocked = SearchTask(ignore_when_blocking=("a", "x"))
    assert "ignore_when_blocking: 'x' is not in" in refused(model, task=blocked)
    without = replace(model, config=replace(model.config, global_attention="none"))
    assert "needs a model with attention" in refused(without, align=True)
    assert "needs a model with attention" in refused(without, unknown={})


def test_models_that_do_not_fit_together_are_refused(model: LoadedModel) -> None:
    source, target = model.vocabularies
    more = Vocabularies(source, Vocabulary((*target.tokens[:-1], "z")))
    backwards = replace(model, task=replace(model.task, right_to_left=True))
    copying = replace(model, task=replace(model.task, copies=True))
    for models, message in (
        ([model, backwards], "the other from right to left"),
        ([model, copying], "one copies unknown symbols, the other does not"),
        ([model, replace(model, vocabularies=more)], "model 1 has 'f', that of model 2 has not"),
        ([replace(model, vocabularies=more), model], "model 2 has 'f', that of model 1 has not"),
    ):
        with pytest.raises(UserError, match=message):
            Translator(models, SearchTask())


def test_an_ensemble_gives_each_model_its_own_ids(model: LoadedModel) -> None:
    """The same model with its tokens in another order averages to itself."""
    (answer,) = Translator([model], SearchTask()).answers(LINES[:1])
    source, target = model.vocabularies
    order = [*range(4), *range(len(target.tokens) - 1, 3, -1)]
    other = copy.deepcopy(model.model)
    with torch.no_grad():
        for weight in (
            other.generator.weight,
            other.generator.bias,
            other.decoder.embeddings.word_lut.weight,
        ):
            weight.copy_(weight[order])
    turned = Vocabularies(source, Vocabulary(tuple(target.tokens[place] for place in order)))
    both = Translator([model, replace(model, model=other, vocabularies=turned)], SearchTask())
    (mean,) = both.answers(LINES[:1])
    assert mean.hypotheses[0].text == answer.hypotheses[0].text
    assert mean.prob == pytest.approx(answer.prob, rel=1e-5)


def test_a_translator_is_not_copied(model: LoadedModel) -> None:
    translator = Translator([model], SearchTask())
    for way in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="make one in each process"):
            way(translator)


@pytest.mark.parametrize("method", ["beam", "exact"])
def test_verification_is_of_the_same_request(model: LoadedModel, method: Any) -> None:
    """With a prefix and a constraint that the most probable output does not have."""
    config = SearchConfig(n_best=2, max_length=12)
    translator = Translator([model], SearchTask(config, method=method, verify=True))
    wishes = [LineConstraints(), LineConstraints((("a b",),)), LineConstraints((), ("b",))]
    answers = translator.answers(LINES[:3], 64, ["a", "", "a"], constraints=wishes)
    certified = [answer for answer in answers if answer.result.certificate.level != "none"]
    assert len(certified) > 1
    assert all(answer.verification.agrees for answer in certified)


def test_what_is_not_certified_is_not_verified(model: LoadedModel) -> None:
    config = SearchConfig(1, max_length=1)
    (answer,) = Translator([model], SearchTask(config, verify=True)).answers(["a b c"])
    assert answer.result.certificate.level == "none"
    assert answer.verification is None
    assert "verified" not in answer.record()


def test_an_exact_search_goes_on_until_every_rank_is_proven(model: LoadedModel) -> None:
    config, doubtful = SearchConfig(4, 3, 8, "optimal"), uncertain(model)
    (first,) = Translator([doubtful], SearchTask(config)).answers(LINES[:1])
    assert (first.result.certificate.level, first.result.certificate.proven) == ("optimal", 1)
    (whole,) = Translator([doubtful], SearchTask(config, method="exact")).answers(LINES[:1])
    assert is_settled(whole.result, 3)


def test_expected_utility_ranks_as_many_as_the_beam_has(model: LoadedModel) -> None:
    """Though one output is wanted, and proven sooner."""
    task = SearchTask(SearchConfig(4, 1, 8, "optimal"), mbr="edit_distance")
    (answer,) = Translator([model], task).answers(LINES[3:])
    assert len(answer.hypotheses) == len(answer.mbr.texts) == 4
    (plain,) = Translator([model], replace(task, mbr=None)).answers(LINES[3:])
    assert plain.result.finished < 4


def test_answers_count_the_attended_positions(model: LoadedModel) -> None:
    soft = copy.deepcopy(model.model)
    soft.decoder.attn.alpha = 1.0
    config = replace(model.config, global_attention_alpha=1.0)
    for models, dense in (
        ([model], False),
        ([model, replace(model, model=soft, config=config)], True),
    ):
        translator = Translator(models, SearchTask(), attention=True)
        assert translator.dense_attention is dense
        for line, answer in zip(LINES, translator.answers(LINES), strict=True):
            length = len(line.split())
            attention = answer.hypotheses[0].hypothesis.attention[:, :length]
            assert list(answer.attended) == (attention > 0).sum(1).tolist()
            assert dense == (min(answer.attended) == length)


def test_samples_depend_on_the_number_of_the_line_alone(model: LoadedModel) -> None:
    task = SearchTask(SearchConfig(n_best=3, max_length=8), sampling=Sampling(topk=-1))
    translator = Translator([uncertain(model)], task)
    alone = translator.answers(LINES, batch_size=1)
    for one, other in zip(alone, translator.answers(LINES, batch_size=64), strict=True):
        assert [each.text for each in one.samples] == [each.text for each in other.samples]
    same = list(translator.answers(["a b c"] * 3))
    assert len({tuple(each.text for each in answer.samples) for answer in same}) == 3


def test_replaced_words_make_texts_of_several_sequences(model: LoadedModel) -> None:
    """So a text may have all that is not listed, and the record says how much."""
    config = SearchConfig(2, 1, 8)
    for unknown, merged in ((None, False), ({}, True)):
        (answer,) = Translator([uncertain(model)], SearchTask(config), unknown=unknown).answers(
            LINES[:1]
        )
        assert answer.result.certificate.level != "exhaustive"
        assert answer.merged is merged
        assert ("slack" in answer.record()) is merged
