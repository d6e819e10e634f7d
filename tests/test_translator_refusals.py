"""What a `Translator` refuses: wrong arguments, impossible requests, models that do not fit."""

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.search import LineConstraints, Sampling, SearchTask
from tests.reversing_model import load_without_warning, without_attention, writing_right_to_left

SAMPLING = SearchTask(sampling=Sampling(topk=2))

needs_attention = pytest.mark.parametrize(
    "option", [{"align": True}, {"unknown": {}}], ids=["align", "unknown"]
)
"""Options that need the attention weights of outputs."""


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_without_warning()


@pytest.fixture
def translator(model: LoadedModel) -> Translator:
    return Translator([model], SearchTask())


# --- arguments -------------------------------------------------------------------------------


def test_no_folder_is_an_error() -> None:
    with pytest.raises(UserError, match="no model is named"):
        Translator.from_folders([])


class TestWrongArguments:
    """They are mistakes in code, not of a user, so they raise Python's own errors."""

    def test_a_line_in_place_of_a_list_is_refused(self, translator: Translator) -> None:
        with pytest.raises(TypeError, match="not one str: give a list"):
            next(translator.answers("a b c"))

    def test_a_line_of_bytes_is_refused(self, translator: Translator) -> None:
        with pytest.raises(TypeError, match="line 2 is bytes; decode it"):
            next(translator.answers(["a b c", b"a b c"]))

    def test_a_negative_size_of_batches_is_refused(self, translator: Translator) -> None:
        with pytest.raises(ValueError, match="batch_size must be at least 1, not -1"):
            next(translator.answers(["a b c"], batch_size=-1))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps], ids=["copy", "pickle"])
def test_a_translator_is_not_copied(
    translator: Translator, duplicate: Callable[[Translator], object]
) -> None:
    with pytest.raises(TypeError, match="make one in each process"):
        duplicate(translator)


# --- requests --------------------------------------------------------------------------------


def refusal(translator: Translator, **requests: Sequence[Any]) -> str:
    """Return the error of a translation of one line with requests, arguments of `answers`."""
    with pytest.raises(UserError) as caught:
        next(translator.answers(["a b c"], **requests))
    return str(caught.value)


def test_a_prefix_of_a_right_to_left_model_is_refused(model: LoadedModel) -> None:
    translator = Translator([writing_right_to_left(model)], SearchTask())
    assert "cannot begin with a prefix" in refusal(translator, prefixes=["c"])


def test_a_prefix_longer_than_outputs_is_refused(model: LoadedModel) -> None:
    translator = Translator([model], SearchTask(SearchConfig(max_length=2)))
    assert "3 tokens, but max_length is 2" in refusal(translator, prefixes=["c b a"])


def test_a_prefix_that_the_vocabulary_lacks_is_refused(translator: Translator) -> None:
    assert "'x' is not in the target" in refusal(translator, prefixes=["c x"])


def test_a_request_for_all_outputs_is_refused_with_sampling() -> None:
    with pytest.raises(UserError, match="n_best: 0, for all outputs, goes with a search"):
        SearchTask(SearchConfig(n_best=0), sampling=Sampling(topk=2))


def test_constraints_with_sampling_are_refused(model: LoadedModel) -> None:
    translator = Translator([model], SAMPLING)
    assert "not with sampling" in refusal(translator, constraints=[LineConstraints()])


# --- tasks and options, refused before any line ----------------------------------------------


@needs_attention
def test_options_of_attention_are_refused_with_sampling(
    model: LoadedModel, option: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="not with sampling"):
        Translator([model], SAMPLING, **option)


@needs_attention
def test_options_of_attention_need_a_model_with_attention(
    model: LoadedModel, option: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="needs a model with attention"):
        Translator([without_attention(model)], SearchTask(), **option)


def test_a_token_to_ignore_that_the_vocabulary_lacks_is_refused(model: LoadedModel) -> None:
    task = SearchTask(ignore_when_blocking=("a", "x"))
    with pytest.raises(UserError, match="ignore_when_blocking: 'x' is not in"):
        Translator([model], task)


# --- models ----------------------------------------------------------------------------------


class TestModelsThatDoNotFitTogether:
    @pytest.fixture
    def other_vocabulary(self, model: LoadedModel) -> LoadedModel:
        """The model with z in place of its last target token, f."""
        source, target = model.vocabularies
        changed = Vocabulary((*target.tokens[:-1], "z"))
        return replace(model, vocabularies=Vocabularies(source, changed))

    def assert_refused(self, models: list[LoadedModel], message: str) -> None:
        """Fail unless an ensemble is refused with this message."""
        with pytest.raises(UserError, match=message):
            Translator(models, SearchTask())

    def test_models_of_both_directions_are_refused(self, model: LoadedModel) -> None:
        self.assert_refused([model, writing_right_to_left(model)], "the other from right to left")

    def test_a_model_that_copies_beside_one_that_does_not_is_refused(
        self, model: LoadedModel
    ) -> None:
        copying = replace(model, task=replace(model.task, copies=True))
        self.assert_refused([model, copying], "one copies unknown symbols, the other does not")

    def test_a_token_that_the_second_lacks_is_named(
        self, model: LoadedModel, other_vocabulary: LoadedModel
    ) -> None:
        self.assert_refused([model, other_vocabulary], "model 1 has 'f', that of model 2 has not")

    def test_a_token_that_the_first_lacks_is_named(
        self, model: LoadedModel, other_vocabulary: LoadedModel
    ) -> None:
        self.assert_refused([other_vocabulary, model], "model 2 has 'f', that of model 1 has not")
