"""`tools.papers.sparsemax`: multi-label classifiers and attention over sentence pairs."""

import io
import json
import math
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import yaml
from scipy.sparse import csr_matrix

from onmt_entmax.errors import UserError
from tests.ended import ended, refused
from tests.oracles import entmax_oracle, loss_oracle
from tools.papers import multilabel, multilabel_fit, nli, nli_data, nli_model, sparsemax
from tools.papers.multilabel import CHOOSERS, Examples, Grid, Loss

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


# --- multi-label -----------------------------------------------------------------------------


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


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("form", ["standardised", "sparse"])
def test_a_fit_is_a_minimum_whatever_its_neighbours(loss: Loss, form: str, monkeypatch) -> None:
    """The gradient vanishes at the model in the coordinates of the features."""
    monkeypatch.setattr(multilabel_fit, "TOLERANCE", 1e-8)
    monkeypatch.setattr(multilabel_fit, "ITERATIONS", 2000)
    sets = [random_examples(), random_examples(21, seed=1)]
    if form == "sparse":
        sets = [each._replace(features=csr_matrix(each.features)) for each in sets]
    for l2, models in multilabel.fit(sets, loss, (0.1, 1.0), form == "standardised"):
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
            labels = examples.labels.double()
            if loss.alpha is not None:
                share = labels / labels.sum(1, keepdim=True)
                expected = loss_oracle(scores.detach(), share, loss.alpha)
                torch.testing.assert_close(loss.of(scores, labels), expected)
            risk = loss.of(scores, labels).mean() + l2 / 2 * weights.square().sum()
            risk.backward()
            assert max(weights.grad.abs().max(), bias.grad.abs().max()) < 1e-4


@pytest.mark.parametrize(
    ("loss", "setting", "expected"),
    [
        (LOGISTIC, 0.5, [True, True, False]),
        (SOFTMAX, 0.5, [True, False, False]),
        (SOFTMAX, 0.05, [True, True, True]),
        (SPARSEMAX, 1.0, [True, True, False]),
        (SPARSEMAX, 6.0, [True, False, False]),  # scores that are 1.2 apart
    ],
)
def test_predicted_labels_are_above_the_threshold(
    loss: Loss, setting: float, expected: list[bool]
) -> None:
    """Or in the support, for sparsemax, whose scores are scaled."""
    scores = torch.tensor([[1.0, 0.8, -1.0]]).double()
    assert loss.predict(scores, setting).tolist() == [expected]


def test_settings_to_choose_from_are_those_of_the_authors() -> None:
    grid = Grid()
    assert grid.settings(LOGISTIC, 20) == pytest.approx([0.05 * n for n in range(1, 11)])
    assert grid.settings(SOFTMAX, 174) == pytest.approx([n / 174 for n in range(1, 11)])
    assert grid.settings(SPARSEMAX, 20) == (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)


def test_a_cut_file_is_one_line() -> None:
    Path("a.arff").write_text("@relation x\n")
    Path("a.xml").write_text('<labels><label name="y"/></labels>')
    with pytest.raises(UserError, match=r"^a.arff .*: no @data$"):
        multilabel.read_examples(Path("a.arff"), Path("a.xml"))


def test_rows_of_an_outer_fold_influence_neither_choice_nor_model() -> None:
    """Other labels in the second fold leave predictions and choices for it as they were."""
    examples = random_examples(24)
    _, held_out = multilabel.split(24, GRID.folds, seed=2)[1]
    labels = examples.labels.clone()
    labels[held_out] = ~labels[held_out]
    labels[held_out, 0] = True
    before = multilabel.cross_validate(examples, SOFTMAX, GRID, 2)
    after = multilabel.cross_validate(examples._replace(labels=labels), SOFTMAX, GRID, 2)
    for chooser in CHOOSERS:
        assert before[chooser].choices[1] == after[chooser].choices[1]
        assert before[chooser].predicted[held_out].equal(after[chooser].predicted[held_out])
        assert before[chooser].probabilities[held_out].equal(after[chooser].probabilities[held_out])
    # They do change the choice for another fold.
    assert before["micro_f1"].choices[0] != after["micro_f1"].choices[0]


@pytest.fixture(params=range(5))
def flags(request: pytest.FixtureRequest) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels and predictions of six rows."""
    generator = torch.Generator().manual_seed(request.param)
    labels, predicted = (torch.rand(6, 5, generator=generator) < 0.3 for _ in range(2))
    return labels, predicted


@pytest.mark.parametrize(("average", "name"), [("micro", "micro_f1"), ("macro", "label_mean_f1")])
def test_f1_is_that_of_scikit_learn(
    flags: tuple[torch.Tensor, torch.Tensor], average: str, name: str
) -> None:
    from sklearn.metrics import f1_score  # takes a second

    expected = f1_score(*flags, average=average, zero_division=0)
    assert multilabel.f1(*flags)[name] == pytest.approx(100 * expected)


def test_macro_f1_is_that_of_mean_precision_and_recall(
    flags: tuple[torch.Tensor, torch.Tensor],
) -> None:
    from sklearn.metrics import precision_recall_fscore_support  # takes a second

    precision, recall, _, _ = precision_recall_fscore_support(
        *flags, average="macro", zero_division=0
    )
    expected = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert multilabel.f1(*flags)["macro_f1"] == pytest.approx(100 * expected)


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


@pytest.fixture
def table(capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints of a data set, whose test set is the same."""
    from sklearn.datasets import dump_svmlight_file

    examples = random_examples(24)
    names = "".join(f'<label name="{name}"></label>' for name in ("it's", "y"))
    Path("labels.xml").write_text(f'<labels xmlns="http://mulan">{names}</labels>')
    labels = examples.labels[:, :2].numpy().astype(int)
    for name in ("d.svm", "t.svm"):
        dump_svmlight_file(examples.features, labels, name, zero_based=False, multilabel=True)
    write_settings()
    assert ended(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    return capsys.readouterr().out


def test_a_table_stands_beside_that_of_the_paper(table: str) -> None:
    assert "| sparsemax |" in table
    assert "73.45 / 74.57" in table


@pytest.mark.usefixtures("table")
def test_every_row_is_predicted_once() -> None:
    lines = Path("out/1.25.predictions.jsonl").read_text().splitlines()
    predictions = [json.loads(line) for line in lines]
    assert [prediction["row"] for prediction in predictions] == list(range(1, 25))
    probabilities = predictions[0]["probabilities"]
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)


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
    ("name", "value"), [("fold", 2), ("folds", 0), ("l2", []), ("losses", [0.5])]
)
def test_wrong_settings_are_named(name: str, value: object) -> None:
    write_settings(**{name: value})
    assert f"m.yaml: {name}" in refused(sparsemax.main, ["multilabel", "m.yaml"])


# --- sentence pairs --------------------------------------------------------------------------

KINDS = ["logistic", "softmax", 1.5, "sparsemax"]
SMALL = nli.Settings(
    train="pairs.tsv",
    held_out=0.2,
    lowercase=True,
    min_frequency=1,
    attention="sparsemax",
    output="softmax",
    word_vec_size=12,
    rnn_size=16,
    dropout=0.0,
    learning_rate=0.02,
    l2=0.0,
    batch_size=8,
    epochs=3,
)


def write_pairs(path: Path) -> Path:
    """Write sentence pairs: the animal of the premise decides."""
    rows = ["sentence_A\tsentence_B\tentailment_judgment"]
    for number in range(24):
        animal = ("dog", "cat", "bird")[number % 3]
        verb = ("runs", "sleeps")[number // 3 % 2]
        premise = f"A {animal} {verb}{' today' * (number % 4)}"
        rows.append(f"{premise}\tit {verb}\t{nli_data.LABELS[number % 3]}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = nli_model.PremiseAttention(4, kind).double()
    states, query = 3 * torch.randn(3, 5, 4).double(), torch.randn(3, 4).double()
    lengths = torch.tensor([5, 1, 3])
    weights = attention(states, query, lengths)
    for sentence, length in enumerate(lengths.tolist()):
        scores = []
        for state in states[sentence, :length]:
            hidden = attention.premise.weight @ state
            hidden = hidden + attention.hypothesis.weight @ query[sentence]
            hidden = hidden + attention.hypothesis.bias
            scores.append((attention.score.weight[0] @ hidden.tanh()).item())
        if kind == "logistic":
            expected = torch.tensor([1 / (1 + math.exp(-score)) for score in scores]).double()
        else:
            expected = entmax_oracle(torch.tensor(scores), nli.alpha_of(kind))
        assert torch.allclose(weights[sentence, :length], expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_weight(kind: float | str) -> None:
    attention = nli_model.PremiseAttention(4, kind)
    weights = attention(torch.randn(3, 5, 4), torch.randn(3, 4), torch.tensor([5, 1, 3]))
    assert not weights[1, 1:].any()
    assert not weights[2, 3:].any()


@pytest.mark.parametrize(
    ("kind", "attended"),
    [("none", None), ("logistic", 2.5), ("softmax", 2.5), (1, 2.5), ("entmax15", 2), (2, 2)],
)
def test_accuracy_and_mean_numbers_of_attended_and_of_all_words(
    kind: float | str, attended: float | None
) -> None:
    """Softmax and the logistic function attend to all words, even with a weight that is 0."""
    pairs = [nli.Pair(("a",) * 2, ("b",), 0, 1), nli.Pair(("a",) * 3, ("b",), 2, 2)]
    weights = [[0.5, 0.5], [0.1, 0, 0.9]]
    predictions = [nli.Prediction([0.6, 0.4, 0], each) for each in weights]
    measures = nli.measure(replace(SMALL, attention=kind), pairs, predictions)
    assert measures == (50, attended, 2.5)


@pytest.fixture
def corpus() -> Path:
    return write_pairs(Path("pairs.tsv"))


class Update(NamedTuple):
    """A model after one update that changes nothing, and the pairs of that update."""

    settings: nli.Settings
    model: nli.Classifier
    encoded: list[Any]
    """The training pairs."""
    batch: Any
    """All of them."""


@pytest.fixture
def update(corpus: Path) -> Update:
    settings = replace(SMALL, output=2, epochs=1, batch_size=100, learning_rate=1e-9)
    nli.train(settings, Path("run"), lambda line: None)
    _, vocabulary, model = nli.load(Path("run"))
    kept, _ = nli.hold_out(nli.read_pairs(corpus, True), SMALL.held_out)
    encoded = nli.encode(kept, vocabulary)
    return Update(settings, model, encoded, nli.make_batch(encoded))


def test_a_held_out_part_shares_no_premise_with_training(corpus: Path) -> None:
    kept, selection = nli.hold_out(nli.read_pairs(corpus, True), SMALL.held_out)
    assert selection
    assert not {pair.premise for pair in kept} & {pair.premise for pair in selection}


def test_probabilities_are_those_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    predictions = nli.predict(update.model, update.settings, update.encoded)
    probabilities = torch.tensor([each.probabilities for each in predictions]).double()
    assert torch.allclose(probabilities, entmax_oracle(scores, 2))


def test_the_loss_is_that_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    one_hot = torch.nn.functional.one_hot(update.batch.labels, 3).double()
    expected = loss_oracle(scores, one_hot, 2).mean().item()
    loss = json.loads(Path("run/metrics.jsonl").read_text())["loss"]
    assert loss == pytest.approx(expected, abs=1e-5)


TRAIN = ["nli", "train", "nli.yaml", "--out"]


def write_nli_settings(**changes: object) -> None:
    content = {**vars(SMALL), "held_out": 0.0, "dev": "pairs.tsv", "epochs": 12, **changes}
    Path("nli.yaml").write_text(yaml.safe_dump(content))


class Trained(NamedTuple):
    """A folder with two trained models, `sparsemax` and `none`, and what was printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("nli")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        write_pairs(Path("pairs.tsv"))
        write_nli_settings()
        for kind in ("sparsemax", "none"):
            assert ended(sparsemax.main, [*TRAIN, kind, "--attention", kind]) == 0
    return Trained(folder, printed.getvalue())


@pytest.fixture
def models(trained: Trained) -> None:
    """The models in the working directory."""
    shutil.copytree(trained.folder, Path(), dirs_exist_ok=True)


def test_training_prints_its_best_epoch(trained: Trained) -> None:
    assert "best epoch: accuracy " in trained.printed


@pytest.mark.usefixtures("models")
def test_a_model_is_not_overwritten() -> None:
    assert "is there already" in refused(sparsemax.main, [*TRAIN, "none"])


@pytest.mark.usefixtures("corpus")
def test_a_training_without_epochs_is_refused() -> None:
    write_nli_settings(epochs=0)
    assert "nli.yaml: epochs: must be" in refused(sparsemax.main, [*TRAIN, "zero"])


@pytest.fixture
def snli(models: None) -> Path:
    """A pair in the format of SNLI, with parses."""
    pair = {
        "gold_label": "neutral",
        "sentence1_binary_parse": "( ( A cat ) runs )",
        "sentence2_binary_parse": "( it runs )",
    }
    Path("snli.jsonl").write_text(json.dumps(pair) + "\n")
    return Path("snli.jsonl")


EVALUATE = ["nli", "evaluate", "sparsemax", "none", "--output", "out.jsonl", "--data"]


@pytest.mark.usefixtures("snli")
@pytest.mark.parametrize("data", ["pairs.tsv", "snli.jsonl"])
def test_both_models_are_evaluated(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both know all pairs."""
    assert ended(sparsemax.main, [*EVALUATE, data]) == 0
    assert capsys.readouterr().out.count("100.00") >= 2


def test_predictions_have_the_words_of_the_parses(snli: Path) -> None:
    assert ended(sparsemax.main, [*EVALUATE, str(snli)]) == 0
    assert json.loads(Path("out.jsonl").read_text())["premise"] == ["a", "cat", "runs"]


DRAW = ["nli", "figures", "sparsemax", "--data", "pairs.tsv", "--out", "pictures", "--lines"]


@pytest.mark.usefixtures("models")
def test_attention_of_lines_is_drawn() -> None:
    assert ended(sparsemax.main, [*DRAW, "2", "5"]) == 0
    for line in (2, 5):
        assert Path(f"pictures/line-{line}.png").stat().st_size > 1000


@pytest.mark.usefixtures("models")
def test_a_line_that_is_not_there_is_named() -> None:
    assert "line 99 has no pair" in refused(sparsemax.main, [*DRAW, "99"], progress=True)
