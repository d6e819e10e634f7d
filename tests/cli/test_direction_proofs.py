"""What is proven of an average of both directions, against all forms of the models.

An enumeration of both models knows nearly all forms and their true probabilities.
"""

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
    """Random models of both directions."""

    seed: int
    end: float
    """What makes forms short; see `write_model`."""
    levels: set[str]
    """All that is proven of any question, with beams of 1 to 50."""

    def write(self, folder: Path) -> list[Path]:
        """Write a left-to-right model and a right-to-left one; return their folders."""
        left = write_model(folder / "left-to-right", self.seed, end=self.end)
        right = write_model(
            folder / "right-to-left", self.seed + 14, end=self.end, options=RIGHT_TO_LEFT
        )
        return [left, right]


FEW_FORMS = Models(seed=40, end=3.0, levels={"only", "exhaustive", "optimal"})
FLAT = Models(seed=50, end=1.5, levels={"optimal", "none"})


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW_FORMS, id="few forms"), pytest.param(FLAT, id="flat distribution")],
)
def models(request: pytest.FixtureRequest) -> Models:
    models: Models = request.param
    return models


@pytest.fixture(scope="module")
def folders(models: Models, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of the left-to-right model and of the right-to-left one."""
    return models.write(tmp_path_factory.mktemp("models"))


class Lists(NamedTuple):
    """The answers to all questions, if one form is listed and if five are."""

    one: list[Inflection]
    five: list[Inflection]


@pytest.fixture(scope="module")
def lists(folders: list[Path]) -> Lists:
    return Lists(
        *(
            list(Inflector(folders, n_best=n_best, beam_size=5, max_length=8).answers(QUESTIONS))
            for n_best in (1, 5)
        )
    )


def test_the_first_form_does_not_depend_on_how_many_are_listed(lists: Lists) -> None:
    """The best form of the average may be the best of neither direction."""
    first_of_five = [answer.forms[:1] for answer in lists.five]
    assert [answer.forms for answer in lists.one] == first_of_five


def test_what_is_proven_does_not_depend_on_how_many_are_listed(lists: Lists) -> None:
    def proofs(answers: list[Inflection]) -> list[tuple[str, float, float]]:
        certificates = [answer.certificate for answer in answers]
        return [
            (answer.level, certificate.bound, certificate.mass)
            for answer, certificate in zip(answers, certificates, strict=True)
        ]

    assert proofs(lists.one) == proofs(lists.five)


# --- against an enumeration ---


N_BEST = 2
ROUNDING = 1e-6  # of probabilities, which models compute in float32
SUM_ROUNDING = 1e-5  # of a sum of many


class Case(NamedTuple):
    """The answer of a search for `N_BEST` forms, and what is true."""

    answer: Inflection
    truth: dict[str, float]
    """All forms that an enumeration finds, with their probabilities."""
    unlisted: float
    """The largest probability that any other form may have."""


@pytest.fixture(scope="module")
def cases(folders: list[Path]) -> list[Case]:
    """All questions, with beams of 1, 2 and 50."""
    everything = list(Inflector(folders, n_best=0, max_length=8).answers(QUESTIONS))
    return [
        Case(answer, {form.text: form.prob for form in truth.forms}, truth.certificate.bound)
        for beam_size in (1, 2, 50)
        for answer, truth in zip(
            Inflector(folders, n_best=N_BEST, beam_size=beam_size, max_length=8).answers(QUESTIONS),
            everything,
            strict=True,
        )
    ]


def cases_of(cases: Sequence[Case], *levels: str) -> list[Case]:
    """Return the cases whose level is one of these.

    `test_the_cases_have_every_level` checks which levels a pair of models has.
    """
    return [case for case in cases if case.answer.level in levels]


def test_the_cases_have_every_level(models: Models, cases: list[Case]) -> None:
    assert {case.answer.level for case in cases} == models.levels


def test_the_true_probability_of_a_form_is_within_its_bounds(cases: list[Case]) -> None:
    for answer, truth, unlisted in cases:
        for form in answer.forms:
            upper = form.prob + answer.certificate.bound + unlisted
            assert form.prob - ROUNDING <= truth[form.text] <= upper + ROUNDING


def test_a_proven_first_form_is_the_most_probable(cases: list[Case]) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive", "optimal"):
        best = max(truth.values())
        assert truth[answer.forms[0].text] == pytest.approx(best, abs=ROUNDING)
        assert answer.certificate.proven >= 1


def test_no_more_forms_are_proven_than_listed(cases: list[Case]) -> None:
    for answer, _, _ in cases:
        assert answer.certificate.proven <= len(answer.forms) <= N_BEST


def test_an_exhaustive_answer_leaves_no_form_out(cases: list[Case]) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive"):
        assert (answer.certificate.bound, answer.certificate.gap) == (0, math.inf)
        assert len(answer.forms) == min(N_BEST, len(truth))


def test_an_exhaustive_answer_accounts_for_all_probability(cases: list[Case]) -> None:
    """The rest is that of excluded strings, which have symbols for start and padding."""
    for answer, _, _ in cases_of(cases, "only", "exhaustive"):
        certificate = answer.certificate
        assert certificate.mass + certificate.excluded == pytest.approx(1, abs=SUM_ROUNDING)


def test_the_level_only_is_that_of_a_single_possible_form(cases: list[Case]) -> None:
    for answer, truth, _ in cases_of(cases, "only", "exhaustive"):
        assert answer.only == (answer.level == "only") == (len(truth) == 1)


def test_other_answers_bound_what_they_leave(cases: list[Case]) -> None:
    for answer, _, _ in cases_of(cases, "optimal", "none"):
        assert answer.certificate.bound > 0
        assert answer.certificate.gap < math.inf


def test_the_gap_bounds_all_other_forms(cases: list[Case]) -> None:
    """Compared as probabilities, since logarithms of rare forms are rounded by more.

    A score next to the threshold has lost digits.
    """
    for answer, truth, _ in cases_of(cases, "optimal"):
        first = answer.forms[0]
        others = [prob for text, prob in truth.items() if text != first.text]
        bound = first.prob * math.exp(-answer.certificate.gap)
        assert max(others, default=0.0) <= bound + 1e-7
