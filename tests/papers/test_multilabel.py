"""Multi-label classifiers of `tools.papers.sparsemax multilabel`: fits, choices, F1, the table."""

import io
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
import yaml
from scipy.sparse import csr_matrix
from torch import Tensor

from onmt_entmax.errors import UserError
from tests.commands import json_lines
from tests.ended import ended, refused
from tests.oracles import loss_oracle
from tools.papers import multilabel, multilabel_data, multilabel_fit, sparsemax
from tools.papers.multilabel import CHOOSERS
from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_fit import Linear
from tools.papers.multilabel_loss import Grid, Loss

LOSSES = [Loss("logistic", None), Loss("softmax", 1.0), Loss("1.25", 1.25), Loss("sparsemax", 2.0)]
LOGISTIC, SOFTMAX, _, SPARSEMAX = LOSSES
GRID = Grid(
    l2=(0.1, 1.0),
    logistic_thresholds=(0.2, 0.4),
    softmax_thresholds=(0.6, 1.2),
    scales=(0.5, 2.0),
    folds=3,
)


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def random_examples(rows: int = 30, seed: int = 0) -> Examples:
    """Return rows whose three labels are the signs of linear functions, with noise.

    Each has at least one label, that of the largest function.
    """
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(rows, 4)) * 3 + 1
    scores = (table - 1) @ generator.normal(size=(4, 3))
    flags = torch.from_numpy(scores + generator.normal(size=scores.shape) > 0)
    flags[torch.arange(rows), torch.from_numpy(scores.argmax(1))] = True
    return Examples(table, flags, ("x", "y", "z"))


# --- fitting ---------------------------------------------------------------------------------


class Fit(NamedTuple):
    """A fitted model and what it was fitted to."""

    model: Linear
    examples: Examples
    features: Tensor
    """What the weights are multiplied by, `(rows, 4)`."""
    loss: Loss
    l2: float

    @property
    def labels(self) -> Tensor:
        """0 or 1, `(rows, 3)`."""
        return self.examples.labels.double()


def fits_of(loss: Loss, form: str) -> Iterator[Fit]:
    """Fit two training sets side by side, for two values of lambda.

    Args:
        loss: what is minimised.
        form: `standardised` or `sparse`, of the features.
    """
    sets = [random_examples(), random_examples(21, seed=1)]
    features = [torch.from_numpy(each.features) for each in sets]
    if form == "standardised":
        features = [(table - table.mean(0)) / table.std(0, correction=0) for table in features]
    else:
        sets = [each._replace(features=csr_matrix(each.features)) for each in sets]
    for l2, models in multilabel_fit.fit(sets, loss, (0.1, 1.0), form == "standardised"):
        for model, examples, table in zip(models, sets, features, strict=True):
            yield Fit(model, examples, table, loss, l2)


FITTED = [
    pytest.param((loss, form), id=f"{loss.name}-{form}")
    for loss in LOSSES
    for form in ("standardised", "sparse")
]
FITTED_BY_ENTMAX_LOSSES = FITTED[2:]  # without the logistic loss


@pytest.fixture(scope="module", params=FITTED)
def fits(request: pytest.FixtureRequest) -> list[Fit]:
    """Models nearer to the minimum than the defaults of L-BFGS would take them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multilabel_fit, "TOLERANCE", 1e-8)
        patch.setattr(multilabel_fit, "ITERATIONS", 2000)
        return list(fits_of(*request.param))


def test_scores_are_linear_in_the_features(fits: list[Fit]) -> None:
    for fit in fits:
        expected = fit.features @ fit.model.weights + fit.model.bias
        torch.testing.assert_close(fit.model.scores(fit.examples.features), expected)


@pytest.mark.parametrize("fits", FITTED_BY_ENTMAX_LOSSES, indirect=True)
def test_the_loss_is_that_of_the_mapping(fits: list[Fit]) -> None:
    """The target is the uniform distribution over a row's labels."""
    for fit in fits:
        scores = fit.model.scores(fit.examples.features)
        target = fit.labels / fit.labels.sum(1, keepdim=True)
        expected = loss_oracle(scores, target, fit.loss.alpha)
        torch.testing.assert_close(fit.loss.of(scores, fit.labels), expected)


def test_a_fit_is_a_minimum_whatever_its_neighbours(fits: list[Fit]) -> None:
    """The gradient of the regularised risk of each training set vanishes at its model."""
    for fit in fits:
        weights, bias = (part.clone().requires_grad_() for part in fit.model[:2])
        losses = fit.loss.of(fit.features @ weights + bias, fit.labels)
        risk = losses.mean() + fit.l2 / 2 * weights.square().sum()
        risk.backward()
        assert max(weights.grad.abs().max(), bias.grad.abs().max()) < 1e-4


# --- choosing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "setting", "expected"),
    [
        pytest.param(LOGISTIC, 0.5, [True, True, False], id="logistic"),
        pytest.param(SOFTMAX, 0.5, [True, False, False], id="softmax"),
        pytest.param(SOFTMAX, 0.05, [True, True, True], id="softmax, a low threshold"),
        pytest.param(SPARSEMAX, 1.0, [True, True, False], id="sparsemax: the support"),
        pytest.param(
            SPARSEMAX, 6.0, [True, False, False], id="sparsemax, scores that are 1.2 apart"
        ),
    ],
)
def test_predicted_labels_are_above_the_threshold_or_in_the_support(
    loss: Loss, setting: float, expected: list[bool]
) -> None:
    """The setting of a sparse loss is a scale of the scores, that of others a threshold."""
    scores = torch.tensor([[1.0, 0.8, -1.0]]).double()
    assert loss.predict(scores, setting).tolist() == [expected]


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


def test_a_cut_file_is_one_line() -> None:
    Path("a.arff").write_text("@relation x\n")
    Path("a.xml").write_text('<labels><label name="y"/></labels>')
    with pytest.raises(UserError, match=r"^a.arff .*: no @data$"):
        multilabel_data.read_examples(Path("a.arff"), Path("a.xml"))


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
        multilabel.cross_validate(each, SOFTMAX, GRID, seed=2) for each in (examples, changed)
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


# --- F1 --------------------------------------------------------------------------------------


@pytest.fixture(params=range(5))
def flags(request: pytest.FixtureRequest) -> tuple[Tensor, Tensor]:
    """Labels and predictions of six rows, bool `(6, 5)`."""
    generator = torch.Generator().manual_seed(request.param)
    labels, predicted = (torch.rand(6, 5, generator=generator) < 0.3 for _ in range(2))
    return labels, predicted


@pytest.mark.parametrize(("average", "name"), [("micro", "micro_f1"), ("macro", "label_mean_f1")])
def test_f1_is_that_of_scikit_learn(flags: tuple[Tensor, Tensor], average: str, name: str) -> None:
    from sklearn.metrics import f1_score  # takes a second

    expected = f1_score(*flags, average=average, zero_division=0)
    assert multilabel.f1(*flags)[name] == pytest.approx(100 * expected)


def test_macro_f1_is_that_of_mean_precision_and_recall(flags: tuple[Tensor, Tensor]) -> None:
    from sklearn.metrics import precision_recall_fscore_support  # takes a second

    precision, recall, _, _ = precision_recall_fscore_support(
        *flags, average="macro", zero_division=0
    )
    expected = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert multilabel.f1(*flags)["macro_f1"] == pytest.approx(100 * expected)


# --- the command -----------------------------------------------------------------------------

SETTINGS = {
    "name": "scene",
    "train": "d.svm",
    "labels": "labels.xml",
    "out": "out",
    "folds": 2,
    "seeds": 2,
    "losses": ["sparsemax", 1.25],
    "l2": [0.1],
    "standardise": False,
}


def write_settings(**changes: object) -> None:
    Path("m.yaml").write_text(yaml.safe_dump({**SETTINGS, **changes}))


class Measured(NamedTuple):
    """A folder with a data set and its results, and the table that was printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Run the command on a data set, beside which lies a test set with the same rows."""
    from sklearn.datasets import dump_svmlight_file

    folder = tmp_path_factory.mktemp("multilabel")
    examples = random_examples(24)
    names = "".join(f'<label name="{name}"></label>' for name in ("it's", "y"))
    labels = examples.labels[:, :2].numpy().astype(int)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        Path("labels.xml").write_text(f'<labels xmlns="http://mulan">{names}</labels>')
        for name in ("d.svm", "t.svm"):
            dump_svmlight_file(examples.features, labels, name, zero_based=False, multilabel=True)
        write_settings()
        assert ended(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    return Measured(folder, printed.getvalue())


@pytest.fixture
def table(measured: Measured) -> str:
    """The printed table; data set and results are in the working directory."""
    shutil.copytree(measured.folder, Path(), dirs_exist_ok=True)
    return measured.printed


def test_a_table_stands_beside_that_of_the_paper(table: str) -> None:
    (row,) = (line for line in table.splitlines() if line.startswith("| sparsemax |"))
    assert "| 73.45 / 74.57 |" in row


@pytest.mark.usefixtures("table")
def test_every_row_is_predicted_once() -> None:
    predictions = json_lines(Path("out/1.25.predictions.jsonl"))
    assert [prediction["row"] for prediction in predictions] == list(range(1, 25))


@pytest.mark.usefixtures("table")
def test_probabilities_of_an_entmax_loss_sum_to_one() -> None:
    for prediction in json_lines(Path("out/1.25.predictions.jsonl")):
        assert sum(prediction["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_a_table_is_made_once(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call prints it again, and fits nothing."""
    monkeypatch.setattr(multilabel, "cross_validate", None)
    assert ended(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    assert capsys.readouterr().out == table


@pytest.mark.usefixtures("table")
def test_a_test_set_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(sparsemax.main, ["multilabel", "m.yaml", "--test", "t.svm"]) == 0
    assert "scene, test, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("fold", 2, id="an unknown key"),
        pytest.param("folds", 0, id="too few folds"),
        pytest.param("l2", [], id="an empty list"),
        pytest.param("losses", [0.5], id="an alpha below 1"),
    ],
)
def test_wrong_settings_are_named(name: str, value: object) -> None:
    write_settings(**{name: value})
    assert f"m.yaml: {name}" in refused(sparsemax.main, ["multilabel", "m.yaml"])
