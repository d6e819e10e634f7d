"""`Translator`, with the committed model of letters, which reverses its source."""

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import pytest

from onmt_entmax import SearchConfig, Translator
from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import (
    Budget,
    LineConstraints,
    Sampling,
    SearchTask,
    Verification,
    is_settled,
    verify,
)
from tests.reversing_model import (
    FOLDER,
    LINES,
    in_another_order,
    load_without_warning,
    with_smaller_scores,
    with_softmax_attention,
    with_softmax_output,
)


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_without_warning()


# --- models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folders", [FOLDER, str(FOLDER), [str(FOLDER)]], ids=["path", "text", "list"]
)
def test_folders_are_a_path_or_text_or_several(
    model: LoadedModel, folders: Path | str | list[str]
) -> None:
    (answer,) = Translator.from_folders(folders).answers(LINES[:1])
    (expected,) = Translator([model], SearchTask()).answers(LINES[:1])
    texts = [output.text for output in answer.hypotheses]
    assert texts == [output.text for output in expected.hypotheses]


def test_a_folder_to_load_may_be_text(model: LoadedModel) -> None:
    assert load(str(FOLDER)).vocabularies == model.vocabularies


def test_an_ensemble_gives_each_model_its_own_ids(model: LoadedModel) -> None:
    """The same model with its tokens in another order averages to itself."""
    (answer,) = Translator([model], SearchTask()).answers(LINES[:1])
    (mean,) = Translator([model, in_another_order(model)], SearchTask()).answers(LINES[:1])
    assert mean.hypotheses[0].text == answer.hypotheses[0].text
    assert mean.prob == pytest.approx(answer.prob, rel=1e-5)


# --- certificates and verification -----------------------------------------------------------


@pytest.mark.parametrize("method", ["beam", "exact"])
def test_verification_is_of_the_same_request(
    model: LoadedModel, method: Literal["beam", "exact"]
) -> None:
    """Each line has a prefix or a constraint that its most probable output does not satisfy."""
    config = SearchConfig(n_best=2, max_length=12)
    task = SearchTask(config, method=method, verify=True)
    translator = Translator([with_smaller_scores(model)], task)
    constraints = [
        LineConstraints(),
        LineConstraints(required=(("d d",),)),
        LineConstraints(avoid=("b",)),
    ]
    lines, prefixes = ["f e d", "f e d", "b b a"], ["d f", "", "a"]
    answers = translator.answers(lines, prefixes=prefixes, constraints=constraints)
    certified = [
        answer
        for answer in answers
        if answer.hypotheses and answer.result.certificate.level != "none"
    ]
    assert len(certified) > 1
    assert all(answer.verification.agrees for answer in certified)


def test_verification_has_the_budget_of_the_search(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = []

    def noted_verify(*arguments: Any, **named: Any) -> Verification:
        budgets.append(signature(verify).bind(*arguments, **named).arguments["budget"])
        return verify(*arguments, **named)

    monkeypatch.setattr("onmt_entmax.line_search.verify", noted_verify)
    task = SearchTask(method="exact", budget=Budget(12_345), verify=True)
    (answer,) = Translator([model], task).answers(LINES[:1])
    assert answer.verification.agrees
    assert budgets == [Budget(12_345)]


def test_what_is_not_certified_is_not_verified(model: LoadedModel) -> None:
    config = SearchConfig(beam_size=1, max_length=1)
    (answer,) = Translator([model], SearchTask(config, verify=True)).answers(["a b c"])
    assert answer.result.certificate.level == "none"
    assert answer.verification is None
    assert "verified" not in answer_record(answer)


def test_an_exact_search_goes_on_until_every_rank_is_proven(model: LoadedModel) -> None:
    """A beam search ends when the best output is proven."""
    config = SearchConfig(beam_size=4, n_best=3, max_length=8, stop="optimal")
    flat = with_softmax_output(model)
    (by_beam,) = Translator([flat], SearchTask(config)).answers(LINES[:1])
    certificate = by_beam.result.certificate
    assert (certificate.level, certificate.proven) == ("optimal", 1)
    (exact,) = Translator([flat], SearchTask(config, method="exact")).answers(LINES[:1])
    assert is_settled(exact.result, 3)


def test_expected_utility_ranks_as_many_as_the_beam_has(model: LoadedModel) -> None:
    """Without it, one output is wanted, and proven before four are finished."""
    config = SearchConfig(beam_size=4, max_length=8, stop="optimal")
    task = SearchTask(config, mbr="edit_distance")
    (answer,) = Translator([model], task).answers(LINES[3:])
    assert len(answer.hypotheses) == len(answer.mbr.texts) == 4
    (plain,) = Translator([model], replace(task, mbr=None)).answers(LINES[3:])
    assert plain.result.finished < 4


# --- attention, samples and replaced words ---------------------------------------------------


class TestAttendedPositions:
    @pytest.fixture(params=["sparse", "dense"])
    def translator(self, request: pytest.FixtureRequest, model: LoadedModel) -> Translator:
        """A model with sparse attention translates, alone or with one that has softmax."""
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
        return Translator([with_softmax_output(model)], task)

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
    translator = Translator([with_softmax_output(model)], task, unknown=unknown)
    (answer,) = translator.answers(LINES[:1])
    assert answer.result.certificate.level != "exhaustive"
    assert answer.merged is merged
    assert ("slack" in answer_record(answer)) is merged
