"""Linear multi-label classifiers: losses, fitting, choosing without leaks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.metrics import f1_score, precision_recall_fscore_support

from onmt_entmax.classify import multilabel
from onmt_entmax.classify.multilabel import (
    CHOOSERS,
    ClassificationError,
    Grid,
    Loss,
    Outcome,
    choose,
    cross_validate,
    f1,
    fit,
    split,
    train_and_predict,
    without,
)
from onmt_entmax.classify.multilabel_data import Examples

LOSSES = [
    Loss("logistic", None),
    Loss("softmax", 1.0),
    Loss("1.25-entmax", 1.25),
    Loss("entmax15", 1.5),
    Loss("sparsemax", 2.0),
]
SPARSEMAX = LOSSES[-1]
GRID = Grid(
    l2=(0.1, 1.0),
    logistic_thresholds=(0.2, 0.4),
    softmax_thresholds=(0.6, 1.2),
    scales=(0.5, 2.0),
    folds=3,
)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def some_examples(rows: int = 30, features: int = 4, labels: int = 3, seed: int = 0) -> Examples:
    """Rows whose labels are the signs of linear functions, with noise; each row has a label."""
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(rows, features)) * 3 + 1
    scores = (table - 1) @ generator.normal(size=(features, labels))
    flags = torch.from_numpy(scores + generator.normal(size=scores.shape) > 0)
    flags[torch.arange(rows), torch.from_numpy(scores.argmax(1))] = True
    names = tuple(f"label{n}" for n in range(labels))
    return Examples(table, flags, names, tuple(map(str, range(features))))


@every_loss
def test_gradients_agree_with_finite_differences(loss):
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = (torch.rand(5, 4, generator=generator) < 0.5).double()
    labels[:, 0] = 1
    assert torch.autograd.gradcheck(lambda z: loss.of(z, labels), scores)


def test_the_losses_of_one_row():
    scores = torch.tensor([[1.0, 0.5, -1.0]]).double()
    labels = torch.tensor([[1.0, 1.0, 0.0]]).double()
    logistic, softmax, _, _, sparsemax = (float(loss.of(scores, labels)) for loss in LOSSES)
    log1p = [np.log1p(np.exp(-1)), np.log1p(np.exp(-0.5)), np.log1p(np.exp(-1))]
    assert logistic == pytest.approx(sum(log1p))
    assert softmax == pytest.approx(np.log(np.exp(1) + np.exp(0.5) + np.exp(-1)) - 0.75)
    # tau = 0.25 over the support {1, 2}: the slides' loss plus Gini's entropy of q, 1/4.
    slides = -0.75 + (1 + 0.25 - 2 * 0.25**2) / 2 + 0.5 / 2
    assert sparsemax == pytest.approx(slides + (1 - 0.5) / 2)


def test_predictions():
    scores = torch.tensor([[1.0, 0.8, -1.0]]).double()
    logistic, softmax, _, _, sparsemax = LOSSES
    assert logistic.predict(scores, 0.5).tolist() == [[True, True, False]]
    assert softmax.predict(scores, 0.5).tolist() == [[True, False, False]]
    assert softmax.predict(scores, 0.05).tolist() == [[True, True, True]]
    assert sparsemax.predict(scores, 1.0).tolist() == [[True, True, False]]
    assert sparsemax.predict(scores, 6.0).tolist() == [[True, False, False]]  # 1.2 apart


@every_loss
@pytest.mark.parametrize("form", ["standardised", "sparse"])
def test_a_fit_is_a_minimum_whatever_its_neighbours(loss, form, monkeypatch):
    """The gradient vanishes at the model in the coordinates of the features."""
    monkeypatch.setattr(multilabel, "_TOLERANCE", 1e-8)
    monkeypatch.setattr(multilabel, "_ITERATIONS", 2000)
    sets = [some_examples(), some_examples(21, seed=1)]
    if form == "sparse":
        sets = [replace(each, features=csr_matrix(each.features)) for each in sets]
    for l2, models in fit(sets, loss, (0.1, 1.0), form == "standardised"):
        for model, examples in zip(models, sets, strict=True):
            weights = model.weights.clone().requires_grad_()
            bias = model.bias.clone().requires_grad_()
            if form == "sparse":
                table = torch.from_numpy(examples.features.toarray())
            else:
                table = torch.from_numpy(examples.features)
                table = (table - table.mean(0)) / table.std(0, correction=0)
            scores = table @ weights + bias
            np.testing.assert_allclose(scores.detach(), model.scores(examples.features))
            risk = loss.of(scores, examples.labels.double()).mean()
            (risk + l2 / 2 * weights.square().sum()).backward()
            assert weights.grad.abs().max() < 1e-4
            assert bias.grad.abs().max() < 1e-4


def test_missing_values_become_the_mean():
    examples = some_examples()
    filled = examples.features.copy()
    examples.features[3:7, 1] = np.nan
    filled[3:7, 1] = np.nanmean(examples.features[:, 1])
    (_, (model,)), *_ = fit([examples], SPARSEMAX, [1.0], True)
    np.testing.assert_allclose(model.scores(examples.features), model.scores(filled))
    with pytest.raises(ClassificationError, match="missing values"):
        list(fit([examples], SPARSEMAX, [1.0], False))


def test_a_constant_feature_changes_nothing():
    examples = some_examples()
    constant = np.full((30, 1), 0.1)
    more = replace(examples, features=np.hstack([examples.features, constant]))
    (_, (model,)), *_ = fit([examples], SPARSEMAX, [1.0], True)
    (_, (other,)), *_ = fit([more], SPARSEMAX, [1.0], True)
    varied = np.hstack([examples.features, constant + 5])
    np.testing.assert_allclose(other.scores(varied), model.scores(examples.features), atol=1e-6)


@pytest.mark.parametrize("loss", [LOSSES[1], SPARSEMAX], ids=lambda loss: loss.name)
def test_rows_of_an_outer_fold_influence_neither_choice_nor_model(loss):
    """Other features and labels in one fold leave all predictions for it as they were, given its
    features, and all that was chosen for it."""
    examples = some_examples(24)
    held_out = split(24, GRID.folds, seed=2)[1]
    changed = replace(examples, features=examples.features.copy(), labels=examples.labels.clone())
    changed.labels[held_out] = ~changed.labels[held_out]
    changed.labels[held_out, 0] = True

    def outcomes(data: Examples) -> dict[str, Outcome]:
        return cross_validate(data, loss, GRID, 2, lambda: None)

    first, second = outcomes(examples), outcomes(changed)
    for chooser in CHOOSERS:
        assert first[chooser].choices[1] == second[chooser].choices[1]
        for kind in ("predicted", "probabilities"):
            one, other = (getattr(each[chooser], kind)[held_out] for each in (first, second))
            assert torch.equal(one, other)
    changed.features[held_out] *= 100
    third = outcomes(changed)
    for chooser in CHOOSERS:
        assert third[chooser].choices[1] == first[chooser].choices[1]
        assert third[chooser].choices[0] != first[chooser].choices[0]


def test_choose_is_the_best_of_the_grid_for_each_measure():
    """Compared with a loop over folds, each of which is fitted alone."""
    examples, loss = some_examples(40, seed=4), LOSSES[0]
    thresholds = tuple(n / 20 for n in range(1, 18))
    grid = replace(GRID, logistic_thresholds=thresholds)
    choices = choose(examples, loss, grid, seed=1)
    measured = {}
    for l2 in grid.l2:
        predicted = {threshold: torch.zeros_like(examples.labels) for threshold in thresholds}
        for rows in split(40, grid.folds, 1):
            part = examples.take(without(40, rows))
            _, (model,) = next(fit([part], loss, [l2], True))
            for threshold in thresholds:
                scores = model.scores(examples.features[rows.numpy()])
                predicted[threshold][rows] = loss.predict(scores, threshold)
        for threshold in thresholds:
            measured[l2, threshold] = f1(examples.labels, predicted[threshold])
    for chooser, choice in choices.items():
        best = max(measured, key=lambda key: measured[key][chooser])
        assert (choice.l2, choice.setting, choice.f1) == (*best, measured[best][chooser])
    micro, macro = (choices[chooser] for chooser in CHOOSERS)
    assert (micro.l2, micro.setting) != (macro.l2, macro.setting)
    outcomes = train_and_predict(examples, examples.features, loss, grid, seed=1)
    for chooser, choice in choices.items():
        assert outcomes[chooser].choices == [choice]
        _, (model,) = next(fit([examples], loss, [choice.l2], True))
        expected = loss.predict(model.scores(examples.features), choice.setting)
        assert torch.equal(outcomes[chooser].predicted, expected)


def test_settings_of_a_loss():
    """The authors' grids; softmax has multiples of 1 / number of labels."""
    grid = Grid()
    assert grid.settings(LOSSES[0], 20) == pytest.approx([0.05 * n for n in range(1, 11)])
    assert grid.settings(LOSSES[1], 20) == pytest.approx([0.05 * n for n in range(1, 11)])
    assert grid.settings(LOSSES[1], 174) == pytest.approx([n / 174 for n in range(1, 11)])
    assert grid.settings(SPARSEMAX, 20) == (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)


def test_rows_without_labels_teach_nothing():
    examples = some_examples()
    extra = some_examples(8, seed=3)
    labels = torch.cat([examples.labels, torch.zeros(8, 3, dtype=torch.bool)])
    more = replace(examples, features=np.vstack([examples.features, extra.features]), labels=labels)
    outcomes = [
        train_and_predict(data, extra.features, SPARSEMAX, GRID, 1)["micro_f1"]
        for data in (examples, more)
    ]
    torch.testing.assert_close(outcomes[0].probabilities, outcomes[1].probabilities)
    with pytest.raises(ClassificationError, match="too few rows with labels for 3 folds: 2"):
        choose(examples.take(torch.arange(2)), SPARSEMAX, GRID, 1)


def test_f1_by_hand_and_by_scikit_learn():
    labels = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 1]]).bool()
    predicted = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]]).bool()
    ours = f1(labels, predicted)
    # 2 hits of 5 labels and 3 predictions.
    assert ours["micro_f1"] == pytest.approx(100 * 2 * 2 / (5 + 3))
    # By label: precision 1, 1/2, 0 (never predicted); recall 1/3, 1, 0; F1 1/2, 2/3, 0.
    precision, recall = (1 + 1 / 2 + 0) / 3, (1 / 3 + 1 + 0) / 3
    assert ours["macro_f1"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    assert ours["label_mean_f1"] == pytest.approx(100 * (1 / 2 + 2 / 3 + 0) / 3)
    assert set(f1(labels, torch.zeros_like(labels)).values()) == {0.0}
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        labels, predicted = (torch.rand(6, 5, generator=generator) < 0.3 for _ in range(2))
        ours = f1(labels, predicted)
        for average, name in (("micro", "micro_f1"), ("macro", "label_mean_f1")):
            theirs = f1_score(labels, predicted, average=average, zero_division=0)
            assert ours[name] == pytest.approx(100 * theirs)
        precision, recall, _, _ = precision_recall_fscore_support(
            labels, predicted, average="macro", zero_division=0
        )
        both = precision + recall
        assert ours["macro_f1"] == pytest.approx(200 * precision * recall / both if both else 0)


def test_folds_are_a_partition():
    folds = split(11, 3, seed=4)
    assert sorted(torch.cat(folds).tolist()) == list(range(11))
    assert {len(fold) for fold in folds} == {3, 4}
    assert [f.tolist() for f in folds] != [f.tolist() for f in split(11, 3, seed=5)]
