"""Settings of multi-label classifiers, and how cross-validation chooses them."""

from typing import NamedTuple

import pytest
from torch import Tensor

from tests.papers.multilabel_examples import LOGISTIC, SOFTMAX, SPARSEMAX, random_examples
from tools.papers import multilabel
from tools.papers.multilabel import CHOOSERS
from tools.papers.multilabel_grid import Grid
from tools.papers.multilabel_loss import Loss


@pytest.mark.parametrize(
    ("loss", "labels", "settings"),
    [
        pytest.param(LOGISTIC, 20, [0.05 * n for n in range(1, 11)], id="logistic"),
        pytest.param(SOFTMAX, 174, [n / 174 for n in range(1, 11)], id="softmax"),
        pytest.param(SPARSEMAX, 20, [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5], id="sparsemax"),
    ],
)
def test_settings_to_choose_from_are_those_of_the_authors(
    loss: Loss, labels: int, settings: list[float]
) -> None:
    assert list(Grid().settings(loss, labels)) == pytest.approx(settings)


# --- cross-validation ------------------------------------------------------------------------

GRID = Grid(
    l2=(0.1, 1.0),
    logistic_thresholds=(0.2, 0.4),
    softmax_thresholds=(0.6, 1.2),
    scales=(0.5, 2.0),
    folds=3,
)


class ChangedFold(NamedTuple):
    """Outcomes of a cross-validation before and after the labels of its second fold change."""

    before: dict[str, multilabel.Outcome]
    after: dict[str, multilabel.Outcome]
    held_out: Tensor
    """Rows of the second fold."""


@pytest.fixture(scope="module")
def changed_fold() -> ChangedFold:
    examples = random_examples(24)
    _, held_out = multilabel.split(24, GRID.folds, seed=2)[1]
    labels = examples.labels.clone()
    labels[held_out] = ~labels[held_out]
    labels[held_out, 0] = True  # for softmax, each row needs a label
    changed = examples._replace(labels=labels)
    before, after = (
        multilabel.cross_validate(rows, SOFTMAX, GRID, seed=2) for rows in (examples, changed)
    )
    return ChangedFold(before, after, held_out)


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_rows_of_an_outer_fold_influence_neither_choice_nor_model(
    chooser: str, changed_fold: ChangedFold
) -> None:
    """Choice and predictions for the fold whose labels changed are as they were."""
    before, after = changed_fold.before[chooser], changed_fold.after[chooser]
    held_out = changed_fold.held_out
    assert before.choices[1] == after.choices[1]
    assert before.predicted[held_out].equal(after.predicted[held_out])
    assert before.probabilities[held_out].equal(after.probabilities[held_out])


def test_rows_of_an_outer_fold_influence_the_choice_for_another(changed_fold: ChangedFold) -> None:
    choices, changed = (
        outcomes["micro_f1"].choices for outcomes in (changed_fold.before, changed_fold.after)
    )
    assert choices[0] != changed[0]
