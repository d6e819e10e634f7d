"""`Translator`, with the committed model of letters, which reverses its source."""

import copy
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import LineConstraints, Sampling, SearchTask, is_settled
from tests.commands import ROOT

FOLDER = ROOT / "tests" / "data" / "model_1.0"
LINES = ["a b c", "f e d b a c", "b b a", "a a a a a a a a"]


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folder has no checksums
        return load(FOLDER)


def with_small_scores(model: LoadedModel) -> LoadedModel:
    """Return the model with softmax of small scores, so that many outputs are possible."""
    other = copy.deepcopy(model.model)
    with torch.no_grad():
        other.generator.weight /= 3
    other.generator.alpha = 1.0
    return replace(model, model=other)


def writing_right_to_left(model: LoadedModel) -> LoadedModel:
    return replace(model, task=replace(model.task, right_to_left=True))


def without_attention(model: LoadedModel) -> LoadedModel:
    return replace(model, config=replace(model.config, global_attention="none"))


# --- folders and arguments -------------------------------------------------------------------


@pytest.mark.parametrize(
    "folders", [FOLDER, str(FOLDER), [str(FOLDER)]], ids=["path", "text", "list"]
)
def test_folders_are_a_path_or_text_or_several(model: LoadedModel, folders: Any) -> None:
    (answer,) = Translator.from_folders(folders).answers(LINES[:1])
    (expected,) = Translator([model], SearchTask()).answers(LINES[:1])
    assert [each.text for each in answer.hypotheses] == [each.text for each in expected.hypotheses]


def test_a_folder_to_load_may_be_text(model: LoadedModel) -> None:
    assert load(str(FOLDER)).vocabularies == model.vocabularies


def test_no_folder_is_an_error() -> None:
    with pytest.raises(UserError, match="no model is named"):
        Translator.from_folders([])


class TestWrongArguments:
    @pytest.fixture
    def translator(self, model: LoadedModel) -> Translator:
        return Translator([model], SearchTask())

    def test_one_line_in_place_of_a_list(self, translator: Translator) -> None:
        with pytest.raises(TypeError, match="give a list"):
            next(translator.answers("a b c"))

    def test_a_line_of_bytes(self, translator: Translator) -> None:
        with pytest.raises(TypeError, match="line 2 is bytes; decode it"):
            next(translator.answers(["a b c", b"a b c"]))

    def test_a_negative_size_of_batches(self, translator: Translator) -> None:
        with pytest.raises(ValueError, match="batch_size must be at least 1, not -1"):
            next(translator.answers(["a b c"], batch_size=-1))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_a_translator_is_not_copied(
    model: LoadedModel, duplicate: Callable[[Translator], object]
) -> None:
    translator = Translator([model], SearchTask())
    with pytest.raises(TypeError, match="make one in each process"):
        duplicate(translator)


# --- requests and models that do not fit -----------------------------------------------------


class TestRequestsThatDoNotFit:
    def refusal(
        self,
        model: LoadedModel,
        task: SearchTask | None = None,
        options: Mapping[str, Any] | None = None,
        **request: Sequence[Any],
    ) -> str:
        """Return the error of a translation of one line, with options of the translator."""
        with pytest.raises(UserError) as caught:
            next(
                Translator([model], task or SearchTask(), **(options or {})).answers(
                    ["a b c"], **request
                )
            )
        return str(caught.value)

    def test_a_prefix_of_a_right_to_left_model(self, model: LoadedModel) -> None:
        message = self.refusal(writing_right_to_left(model), prefixes=["c"])
        assert "cannot begin with a prefix" in message

    def test_a_prefix_longer_than_outputs(self, model: LoadedModel) -> None:
        task = SearchTask(SearchConfig(max_length=2))
        message = self.refusal(model, task, prefixes=["c b a"])
        assert "3 tokens, but max_length is 2" in message

    def test_a_prefix_that_the_vocabulary_lacks(self, model: LoadedModel) -> None:
        assert "'x' is not in the target" in self.refusal(model, prefixes=["c x"])

    def test_constraints_with_sampling(self, model: LoadedModel) -> None:
        task = SearchTask(sampling=Sampling(topk=2))
        message = self.refusal(model, task, constraints=[LineConstraints()])
        assert "not with sampling" in message

    @pytest.mark.parametrize("option", [{"align": True}, {"unknown": {}}], ids=["align", "unknown"])
    def test_attention_with_sampling(self, model: LoadedModel, option: dict[str, Any]) -> None:
        task = SearchTask(sampling=Sampling(topk=2))
        assert "not with sampling" in self.refusal(model, task, option)

    def test_a_token_to_ignore_that_the_vocabulary_lacks(self, model: LoadedModel) -> None:
        message = self.refusal(model, SearchTask(ignore_when_blocking=("a", "x")))
        assert "ignore_when_blocking: 'x' is not in" in message

    @pytest.mark.parametrize("option", [{"align": True}, {"unknown": {}}], ids=["align", "unknown"])
    def test_attention_of_a_model_without(self, model: LoadedModel, option: dict[str, Any]) -> None:
        message = self.refusal(without_attention(model), options=option)
        assert "needs a model with attention" in message


class TestModelsThatDoNotFitTogether:
    @pytest.fixture
    def other_vocabulary(self, model: LoadedModel) -> LoadedModel:
        source, target = model.vocabularies
        changed = Vocabulary((*target.tokens[:-1], "z"))
        return replace(model, vocabularies=Vocabularies(source, changed))

    def refuse(self, models: list[LoadedModel], message: str) -> None:
        with pytest.raises(UserError, match=message):
            Translator(models, SearchTask())

    def test_other_directions(self, model: LoadedModel) -> None:
        self.refuse([model, writing_right_to_left(model)], "the other from right to left")

    def test_copying_and_not(self, model: LoadedModel) -> None:
        copying = replace(model, task=replace(model.task, copies=True))
        self.refuse([model, copying], "one copies unknown symbols, the other does not")

    def test_a_token_that_the_second_lacks(
        self, model: LoadedModel, other_vocabulary: LoadedModel
    ) -> None:
        self.refuse([model, other_vocabulary], "model 1 has 'f', that of model 2 has not")

    def test_a_token_that_the_first_lacks(
        self, model: LoadedModel, other_vocabulary: LoadedModel
    ) -> None:
        self.refuse([other_vocabulary, model], "model 2 has 'f', that of model 1 has not")


def in_another_order(model: LoadedModel) -> LoadedModel:
    """Return the model with its target tokens, but for the special ones, from last to first."""
    source, target = model.vocabularies
    order = [*range(4), *range(len(target.tokens) - 1, 3, -1)]
    network = copy.deepcopy(model.model)
    output, embeddings = network.generator, network.decoder.embeddings
    with torch.no_grad():
        for weight in (output.weight, output.bias, embeddings.word_lut.weight):
            weight.copy_(weight[order])
    tokens = tuple(target.tokens[index] for index in order)
    return replace(model, model=network, vocabularies=Vocabularies(source, Vocabulary(tokens)))


def test_an_ensemble_gives_each_model_its_own_ids(model: LoadedModel) -> None:
    """The same model with its tokens in another order averages to itself."""
    (answer,) = Translator([model], SearchTask()).answers(LINES[:1])
    (mean,) = Translator([model, in_another_order(model)], SearchTask()).answers(LINES[:1])
    assert mean.hypotheses[0].text == answer.hypotheses[0].text
    assert mean.prob == pytest.approx(answer.prob, rel=1e-5)


# --- certificates and verification -----------------------------------------------------------


@pytest.mark.parametrize("method", ["beam", "exact"])
def test_verification_is_of_the_same_request(model: LoadedModel, method: Any) -> None:
    """With a prefix and a constraint that the most probable output does not have."""
    config = SearchConfig(n_best=2, max_length=12)
    translator = Translator([model], SearchTask(config, method=method, verify=True))
    constraints = [
        LineConstraints(),
        LineConstraints(required=(("a b",),)),
        LineConstraints(avoid=("b",)),
    ]
    answers = translator.answers(LINES[:3], prefixes=["a", "", "a"], constraints=constraints)
    certified = [answer for answer in answers if answer.result.certificate.level != "none"]
    assert len(certified) > 1
    assert all(answer.verification.agrees for answer in certified)


def test_what_is_not_certified_is_not_verified(model: LoadedModel) -> None:
    config = SearchConfig(beam_size=1, max_length=1)
    (answer,) = Translator([model], SearchTask(config, verify=True)).answers(["a b c"])
    assert answer.result.certificate.level == "none"
    assert answer.verification is None
    assert "verified" not in answer_record(answer)


def test_an_exact_search_goes_on_until_every_rank_is_proven(model: LoadedModel) -> None:
    config = SearchConfig(beam_size=4, n_best=3, max_length=8, stop="optimal")
    flat = with_small_scores(model)
    (by_beam,) = Translator([flat], SearchTask(config)).answers(LINES[:1])
    certificate = by_beam.result.certificate
    assert (certificate.level, certificate.proven) == ("optimal", 1)
    (exact,) = Translator([flat], SearchTask(config, method="exact")).answers(LINES[:1])
    assert is_settled(exact.result, 3)


def test_expected_utility_ranks_as_many_as_the_beam_has(model: LoadedModel) -> None:
    """One output is wanted, and proven sooner."""
    config = SearchConfig(beam_size=4, max_length=8, stop="optimal")
    task = SearchTask(config, mbr="edit_distance")
    (answer,) = Translator([model], task).answers(LINES[3:])
    assert len(answer.hypotheses) == len(answer.mbr.texts) == 4
    (plain,) = Translator([model], replace(task, mbr=None)).answers(LINES[3:])
    assert plain.result.finished < 4


# --- attention, samples and replaced words ---------------------------------------------------


def with_softmax_attention(model: LoadedModel) -> LoadedModel:
    other = copy.deepcopy(model.model)
    other.decoder.attn.alpha = 1.0
    return replace(model, model=other, config=replace(model.config, global_attention_alpha=1.0))


class TestAttendedPositions:
    @pytest.fixture(params=["sparse", "dense"])
    def translator(self, request: pytest.FixtureRequest, model: LoadedModel) -> Translator:
        """Of a model with sparse attention, alone or with one that has softmax."""
        dense = [with_softmax_attention(model)] if request.param == "dense" else []
        return Translator([model, *dense], SearchTask(), attention=True)

    def test_are_counted(self, translator: Translator) -> None:
        for line, answer in zip(LINES, translator.answers(LINES), strict=True):
            length = len(line.split())
            attention = answer.hypotheses[0].hypothesis.attention[:, :length]
            assert list(answer.attended) == (attention > 0).sum(1).tolist()

    def test_are_all_if_attention_is_dense(self, translator: Translator) -> None:
        for line, answer in zip(LINES, translator.answers(LINES), strict=True):
            are_all = min(answer.attended) == len(line.split())
            assert are_all is translator.dense_attention

    def test_of_an_ensemble_are_dense_if_those_of_a_model_are(self, model: LoadedModel) -> None:
        models = [model, with_softmax_attention(model)]
        assert Translator(models, SearchTask(), attention=True).dense_attention
        assert not Translator([model], SearchTask(), attention=True).dense_attention


class TestSamples:
    @pytest.fixture
    def translator(self, model: LoadedModel) -> Translator:
        task = SearchTask(SearchConfig(n_best=3, max_length=8), sampling=Sampling(topk=-1))
        return Translator([with_small_scores(model)], task)

    def texts(self, translator: Translator, lines: list[str], size: int = 64) -> list[list[str]]:
        """Return the samples of each line, translated in batches of a size."""
        answers = translator.answers(lines, batch_size=size)
        return [[sample.text for sample in answer.samples] for answer in answers]

    def test_do_not_depend_on_the_batch(self, translator: Translator) -> None:
        assert self.texts(translator, LINES, size=1) == self.texts(translator, LINES, size=64)

    def test_depend_on_the_number_of_the_line(self, translator: Translator) -> None:
        texts = self.texts(translator, ["a b c"] * 3)
        assert len({tuple(of_line) for of_line in texts}) == 3


@pytest.mark.parametrize(
    ("unknown", "merged"), [(None, False), ({}, True)], ids=["as they are", "replaced"]
)
def test_replaced_words_make_texts_of_several_sequences(
    model: LoadedModel, unknown: dict[str, str] | None, merged: bool
) -> None:
    """A text may then have all probability that is not listed; the record says how much."""
    task = SearchTask(SearchConfig(beam_size=2, max_length=8))
    translator = Translator([with_small_scores(model)], task, unknown=unknown)
    (answer,) = translator.answers(LINES[:1])
    assert answer.result.certificate.level != "exhaustive"
    assert answer.merged is merged
    assert ("slack" in answer_record(answer)) is merged
