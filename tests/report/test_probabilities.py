"""The calibration of predictions: its error, and the text about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.probabilities import Probabilities

PREDICTIONS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1)


def probabilities_of(predictions: list[tuple[float, bool]]) -> Probabilities:
    probabilities = Probabilities()
    for probability, is_right in predictions:
        probabilities.add(probability, is_right=is_right)
    return probabilities


@given(PREDICTIONS)
def test_the_error_is_the_mean_distance_in_ten_intervals(
    predictions: list[tuple[float, bool]],
) -> None:
    """Each interval is weighted by the number of its predictions; the last one contains 1."""
    distance = 0.0
    for interval in range(10):
        inside = [(p, right) for p, right in predictions if min(int(p * 10), 9) == interval]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            distance += len(inside) * abs(mean - share)
    expected = pytest.approx(distance / len(predictions), abs=1e-9)
    assert probabilities_of(predictions).calibration_error == expected


def test_predictions_as_often_right_as_they_say_have_no_error() -> None:
    assert probabilities_of([(0.75, True)] * 3 + [(0.75, False)]).calibration_error == 0


def test_the_mean_is_that_of_all_predictions() -> None:
    assert probabilities_of([(1.0, True), (0.2, False)]).mean == pytest.approx(0.6)


def test_the_text_has_the_surest_predictions() -> None:
    predictions = [(0.9, True), (1.0, False), (0.5, True), (0.5, False)]
    assert probabilities_of(predictions).text() == (
        "probabilities: mean 72.50%, error of calibration 22.50%; 0.9 or more for 50.00% of the "
        "predictions, and of these right 50.00%"
    )


def test_the_text_leaves_the_surest_predictions_out_if_there_are_none() -> None:
    assert probabilities_of([(0.5, True)]).text() == (
        "probabilities: mean 50.00%, error of calibration 50.00%"
    )
