"""What is proven about averages of both directions, compared with an enumeration of their forms."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.inflector import Inflection
from tests.cli.directions import QUESTIONS, RIGHT_TO_LEFT
from tests.inflection_models import write_model


class Models(NamedTuple):
    """A random left-to-right model and a random right-to-left one.

    Attributes:
        seeds: those of the weights of each.
        end: see `write_model`; the larger it is, the fewer forms they have.
        levels: the levels of the answers to `QUESTIONS`, with beams of 1, 2 and 50.
    """

    seeds: tuple[int, int]
    end: float
    levels: set[str]

    def write(self, folder: Path) -> list[Path]:
        """Write both; return their folders."""
        left_seed, right_seed = self.seeds
        left = write_model(folder / "left-to-right", left_seed, end=self.end)
        right = write_model(
            folder / "right-to-left", right_seed, end=self.end, options=RIGHT_TO_LEFT
        )
        return [left, right]


FEW_FORMS = Models(seeds=(40, 54), end=3.0, levels={"only", "exhaustive", "optimal"})
MANY_FORMS = Models(seeds=(50, 64), end=1.5, levels={"optimal", "none"})


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW_FORMS, id="few forms"), pytest.param(MANY_FORMS, id="many forms")],
)
def models(request: pytest.FixtureRequest) -> Models:
    models: Models = request.param
    return models


@pytest.fixture(scope="module")
def folders(models: Models, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of both models."""
    return models.write(tmp_path_factory.mktemp("models"))


def answers_of(folders: list[Path], n_best: int, beam_size: int = 5) -> list[Inflection]:
    """Return the answers of the average to `QUESTIONS`, with forms of up to 8 letters.

    Args:
        folders: the models.
        n_best: how many forms are listed; 0: all that an enumeration finds.
        beam_size: prefixes that a search follows.
    """
    inflector = Inflector(folders, n_best=n_best, beam_size=beam_size, max_length=8)
    return list(inflector.answers(QUESTIONS))


# --- how many forms are listed ---


class Lists(NamedTuple):
    """The answers to all questions, if one form is listed and if five are."""

    one: list[Inflection]
    five: list[Inflection]


@pytest.fixture(scope="module")
def lists(folders: list[Path]) -> Lists:
    return Lists(one=answers_of(folders, n_best=1), five=answers_of(folders, n_best=5))


def test_the_first_form_does_not_depend_on_how_many_are_listed(lists: Lists) -> None:
    """The best form of the average may be the best of neither direction."""
    first_of_five = [answer.forms[:1] for answer in lists.five]
    assert [answer.forms for answer in lists.one] == first_of_five


def test_what_is_proven_does_not_depend_on_how_many_are_listed(lists: Lists) -> None:
    def proofs(answers: list[Inflection]) -> list[tuple[str, float, float]]:
        return [
            (answer.level, answer.certificate.bound, answer.certificate.mass) for answer in answers
        ]

    assert proofs(lists.one) == proofs(lists.five)


# --- against an enumeration ---


N_BEST = 2
ROUNDING = 1e-6  # of probabilities, which models compute in float32
SUM_ROUNDING = 1e-5  # of a sum of many
GAP_ROUNDING = 1e-7  # of the bound that a gap gives


class Case(NamedTuple):
    """An answer, and what an enumeration of both models found for the same question.

    Attributes:
        answer: the answer of a beam search for `N_BEST` forms.
        truth: the probability of each form that the enumeration found.
        unlisted: the largest probability that any other form may have.
    """

    answer: Inflection
    truth: dict[str, float]
    unlisted: float


@pytest.fixture(scope="module")
def cases(folders: list[Path]) -> list[Case]:
    """All questions, with beams of 1, 2 and 50."""
    enumerated = answers_of(folders, n_best=0)
    cases = []
    for beam_size in (1, 2, 50):
        answers = answers_of(folders, N_BEST, beam_size)
        for answer, everything in zip(answers, enumerated, strict=True):
            truth = {form.text: form.prob for form in everything.forms}
            cases.append(Case(answer, truth, unlisted=everything.certificate.bound))
    return cases


def cases_of(cases: Sequence[Case], *levels: str) -> list[Case]:
    """Return the cases whose level is one of these; there must be some."""
    chosen = [case for case in cases if case.answer.level in levels]
    assert chosen
    return chosen


def test_the_cases_have_every_level(models: Models, cases: list[Case]) -> None:
    assert {case.answer.level for case in cases} == models.levels


def test_the_true_probability_of_a_form_is_within_its_bounds(cases: list[Case]) -> None:
    for answer, truth, unlisted in cases:
        for form in answer.forms:
            upper = form.prob + answer.certificate.bound + unlisted
            assert form.prob - ROUNDING <= truth[form.text] <= upper + ROUNDING


def test_no_more_forms_are_proven_than_listed(cases: list[Case]) -> None:
    for answer, _, _ in cases:
        assert answer.certificate.proven <= len(answer.forms) <= N_BEST


def test_a_proven_first_form_is_the_most_probable(cases: list[Case]) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive", "optimal"):
        assert answer.certificate.proven >= 1
        best = max(truth.values())
        assert truth[answer.forms[0].text] == pytest.approx(best, abs=ROUNDING)


def test_an_answer_that_is_not_exhaustive_bounds_other_forms(cases: list[Case]) -> None:
    for answer, _, _ in cases_of(cases, "optimal", "none"):
        assert answer.certificate.bound > 0
        assert answer.certificate.gap < math.inf


def test_the_gap_of_an_optimal_answer_bounds_all_other_forms(cases: list[Case]) -> None:
    """Probabilities are compared: the logarithms of rare forms are rounded by more."""
    for answer, truth, _ in cases_of(cases, "optimal"):
        first = answer.forms[0]
        others = [prob for text, prob in truth.items() if text != first.text]
        bound = first.prob * math.exp(-answer.certificate.gap)
        assert max(others, default=0.0) <= bound + GAP_ROUNDING


# --- exhaustive answers, which only models of few forms have ---

few_forms = pytest.mark.parametrize("models", [FEW_FORMS], indirect=True, ids=["few forms"])


@few_forms
def test_an_exhaustive_answer_leaves_no_form_out(cases: list[Case]) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive"):
        assert (answer.certificate.bound, answer.certificate.gap) == (0, math.inf)
        assert len(answer.forms) == min(N_BEST, len(truth))


@few_forms
def test_an_exhaustive_answer_accounts_for_all_probability(cases: list[Case]) -> None:
    """What forms leave is on excluded strings, which have symbols for the start or padding."""
    for answer, _, _ in cases_of(cases, "only", "exhaustive"):
        certificate = answer.certificate
        assert certificate.mass + certificate.excluded == pytest.approx(1, abs=SUM_ROUNDING)


@few_forms
def test_the_level_of_an_exhaustive_answer_is_only_if_one_form_is_possible(
    cases: list[Case],
) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive"):
        assert answer.only == (answer.level == "only") == (len(truth) == 1)
