"""Which validated model of a run is the best, and how long none was better."""

import math

import pytest

from onmt_entmax.train.selection import Selection


def judged(measure: str, *values: float) -> Selection:
    """Return the selection after planned validations with these values, at steps 1, 2, ..."""
    selection = Selection(measure)
    for step, value in enumerate(values, 1):
        selection.judge(value, step, planned=True)
    return selection


@pytest.mark.parametrize(
    ("measure", "values", "best_step"),
    [
        pytest.param("loss", (2.0, 1.0, 1.5), 2, id="the lowest loss"),
        pytest.param("loss", (1.0, 1.0), 1, id="the first of equal losses"),
        pytest.param("loss", (math.nan, 3.0, math.nan), 2, id="a loss that is a number"),
        pytest.param("loss", (math.inf, math.nan, 3.0), 3, id="a loss that is finite"),
        pytest.param("loss", (0.0, 0.0), 1, id="the first loss of zero"),
        pytest.param("exact_match", (20.0, 30.0, 25.0), 2, id="the highest accuracy"),
        pytest.param("exact_match", (0.0, 0.0, 0.0), 3, id="the newest without a right output"),
        pytest.param("exact_match", (0.0, 5.0, 0.0), 2, id="one right output"),
    ],
)
def test_the_best_model_has_the_best_value_that_is_a_number(
    measure: str, values: tuple[float, ...], best_step: int
) -> None:
    assert judged(measure, *values).best_step == best_step


def test_validations_that_are_no_better_are_counted() -> None:
    assert judged("loss", 2.0, 1.0, 1.0, 1.5).waited == 2


def test_equal_values_wait_even_where_the_newest_is_best() -> None:
    assert judged("exact_match", 0.0, 0.0, 0.0).waited == 2


def test_an_extra_validation_does_not_count_for_early_stopping() -> None:
    selection = judged("loss", 2.0)
    selection.judge(1.0, 2, planned=False)
    selection.judge(1.5, 3, planned=True)
    assert (selection.best_planned, selection.waited) == (1.5, 0)


def test_an_extra_validation_may_find_the_best() -> None:
    selection = judged("loss", 2.0)
    assert selection.judge(1.0, 2, planned=False)
    assert (selection.best, selection.best_step) == (1.0, 2)


def test_a_resumed_run_selects_as_before() -> None:
    saved = judged("loss", 2.0, 1.0, 1.5).state_dict()
    resumed = Selection("loss")
    resumed.load_state_dict(saved)
    assert resumed.state_dict() == saved
    assert not resumed.judge(1.2, 4, planned=True)
