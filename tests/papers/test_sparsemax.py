"""`tools.papers.sparsemax`: multi-label classifiers and attention over sentence pairs."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from scipy.sparse import csr_matrix

from onmt_entmax.errors import UserError
from tests.ended import ended, refused
from tests.oracles import entmax_oracle, loss_oracle
from tools.papers import multilabel, multilabel_fit, nli, sparsemax
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
def corpus(tmp_path: Path, monkeypatch) -> None:
    """Sentence pairs in the current folder: the animal of the premise decides."""
    monkeypatch.chdir(tmp_path)
    rows = ["sentence_A\tsentence_B\tentailment_judgment"]
    for n in range(24):
        animal, verb = ("dog", "cat", "bird")[n % 3], ("runs", "sleeps")[n // 3 % 2]
        rows.append(f"A {animal} {verb}{' today' * (n % 4)}\tit {verb}\t{nli.LABELS[n % 3]}")
    Path("pairs.tsv").write_text("\n".join(rows) + "\n")


# --- multi-label -----------------------------------------------------------------------------


def some_examples(rows: int = 30, seed: int = 0) -> Examples:
    """Rows whose three labels are the signs of linear functions, with noise; each has a label."""
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
    sets = [some_examples(), some_examples(21, seed=1)]
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


def test_predictions_and_settings() -> None:
    scores = torch.tensor([[1.0, 0.8, -1.0]]).double()
    for loss, setting, expected in (
        (LOGISTIC, 0.5, [True, True, False]),
        (SOFTMAX, 0.5, [True, False, False]),
        (SOFTMAX, 0.05, [True, True, True]),
        (SPARSEMAX, 1.0, [True, True, False]),
        (SPARSEMAX, 6.0, [True, False, False]),  # 1.2 apart
    ):
        assert loss.predict(scores, setting).tolist() == [expected]
    grid = Grid()  # the authors'
    assert grid.settings(LOGISTIC, 20) == pytest.approx([0.05 * n for n in range(1, 11)])
    assert grid.settings(SOFTMAX, 174) == pytest.approx([n / 174 for n in range(1, 11)])
    assert grid.settings(SPARSEMAX, 20) == (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)


def test_a_cut_file_is_one_line() -> None:
    Path("a.arff").write_text("@relation x\n")
    Path("a.xml").write_text('<labels><label name="y"/></labels>')
    with pytest.raises(UserError, match=r"^a.arff .*: no @data$"):
        multilabel.read_examples(Path("a.arff"), Path("a.xml"))


def test_rows_of_an_outer_fold_influence_neither_choice_nor_model() -> None:
    """Other labels in one fold leave predictions and choices for it as they were."""
    examples = some_examples(24)
    _, held_out = multilabel.split(24, GRID.folds, seed=2)[1]
    changed = examples._replace(labels=examples.labels.clone())
    changed.labels[held_out] = ~changed.labels[held_out]
    changed.labels[held_out, 0] = True
    first, second = (multilabel.cross_validate(e, SOFTMAX, GRID, 2) for e in (examples, changed))
    for chooser in CHOOSERS:
        assert first[chooser].choices[1] == second[chooser].choices[1]
        for kind in ("predicted", "probabilities"):
            one, other = (getattr(each[chooser], kind)[held_out] for each in (first, second))
            assert torch.equal(one, other)
    assert first["micro_f1"].choices[0] != second["micro_f1"].choices[0]


def test_f1_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score, precision_recall_fscore_support  # takes a second

    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        labels, predicted = (torch.rand(6, 5, generator=generator) < 0.3 for _ in range(2))
        ours = multilabel.f1(labels, predicted)
        for average, name in (("micro", "micro_f1"), ("macro", "label_mean_f1")):
            theirs = f1_score(labels, predicted, average=average, zero_division=0)
            assert ours[name] == pytest.approx(100 * theirs)
        precision, recall, _, _ = precision_recall_fscore_support(
            labels, predicted, average="macro", zero_division=0
        )
        both = precision + recall
        assert ours["macro_f1"] == pytest.approx(200 * precision * recall / both if both else 0)


def write_labels() -> None:
    names = "".join(f'<label name="{name}"></label>' for name in ("it's", "y"))
    Path("labels.xml").write_text(f'<labels xmlns="http://mulan">{names}</labels>')


def test_a_table_is_made_once(capsys, monkeypatch) -> None:
    from sklearn.datasets import dump_svmlight_file

    examples = some_examples(24)
    write_labels()
    labels = examples.labels[:, :2].numpy().astype(int)
    for name in ("d.svm", "t.svm"):
        dump_svmlight_file(examples.features, labels, name, zero_based=False, multilabel=True)
    settings = {"name": "scene", "train": "d.svm", "labels": "labels.xml", "out": "out", "folds": 2}
    settings |= {"seeds": 2, "losses": ["sparsemax", 1.25], "l2": [0.1], "standardise": False}
    Path("m.yaml").write_text(yaml.safe_dump(settings))
    assert ended(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    first = capsys.readouterr().out
    assert "| sparsemax |" in first
    assert "73.45 / 74.57" in first
    lines = Path("out/1.25.predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == list(range(1, 25))
    assert sum(json.loads(lines[0])["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    monkeypatch.setattr(multilabel, "cross_validate", None)  # nothing is fitted again
    assert ended(sparsemax.main, ["multilabel", "m.yaml"]) == 0
    assert capsys.readouterr().out == first
    assert ended(sparsemax.main, ["multilabel", "m.yaml", "--test", "t.svm"]) == 0
    assert "scene, test, " in capsys.readouterr().out
    for wrong in ({"fold": 2}, {"folds": 0}, {"l2": []}, {"losses": [0.5]}):
        Path("m.yaml").write_text(yaml.safe_dump({**settings, **wrong}))
        assert f"m.yaml: {min(wrong)}" in refused(sparsemax.main, ["multilabel", "m.yaml"])


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


def train(settings: nli.Settings, name: str = "run") -> nli.Measures:
    return nli.train(settings, Path(name), lambda line: None)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = nli.PremiseAttention(4, kind).double()
    states, query = torch.randn(3, 5, 4).double(), torch.randn(3, 4).double()
    lengths = torch.tensor([5, 1, 3])
    weights = attention(3 * states, query, lengths)
    for n, length in enumerate(lengths.tolist()):
        scores = []
        for t in range(length):
            hidden = attention.premise.weight @ (3 * states[n, t])
            hidden = hidden + attention.hypothesis.weight @ query[n] + attention.hypothesis.bias
            scores.append((attention.score.weight[0] @ hidden.tanh()).item())
        if kind == "logistic":
            expected = torch.tensor([1 / (1 + math.exp(-z)) for z in scores]).double()
        else:
            expected = entmax_oracle(torch.tensor(scores), nli.alpha_of(kind))
        assert torch.allclose(weights[n, :length], expected, atol=1e-6)
        assert not weights[n, length:].any()


@pytest.mark.parametrize(
    ("kind", "attended"),
    [("none", None), ("logistic", 2.5), ("softmax", 2.5), (1, 2.5), ("entmax15", 2), (2, 2)],
)
def test_measures(kind: float | str, attended: float | None) -> None:
    """Softmax and the logistic function attend to all words, even with a weight that is 0."""
    pairs = [nli.Pair(("a",) * 2, ("b",), 0, 1), nli.Pair(("a",) * 3, ("b",), 2, 2)]
    weights = [[0.5, 0.5], [0.1, 0, 0.9]]
    predictions = [nli.Prediction([0.6, 0.4, 0], each) for each in weights]
    measures = nli.measure(replace(SMALL, attention=kind), pairs, predictions)
    assert measures == (50, attended, 2.5)


def test_loss_and_probabilities() -> None:
    settings = replace(SMALL, output=2, epochs=1, batch_size=100, learning_rate=1e-9)
    train(settings)
    _, words, model = nli.load(Path("run"))
    kept, selection = nli.hold_out(nli.read_pairs(Path("pairs.tsv"), True), SMALL.held_out)
    assert not {pair.premise for pair in kept} & {pair.premise for pair in selection}
    encoded = nli.encode(kept, words)
    batch = nli.make_batch(encoded)
    scores = model(batch)[0].detach()
    probabilities = [p.probabilities for p in nli.predict(model, settings, encoded)]
    assert torch.allclose(torch.tensor(probabilities).double(), entmax_oracle(scores, 2))
    losses = loss_oracle(scores, torch.nn.functional.one_hot(batch.labels, 3).double(), 2)
    loss = json.loads(Path("run/metrics.jsonl").read_text())["loss"]
    assert loss == pytest.approx(losses.mean().item(), abs=1e-5)


def test_commands_of_sentence_pairs(capsys) -> None:
    content = {**vars(SMALL), "held_out": 0.0, "dev": "pairs.tsv", "epochs": 12}
    Path("nli.yaml").write_text(yaml.safe_dump(content))
    command = ["nli", "train", "nli.yaml", "--out"]
    for kind in ("sparsemax", "none"):
        assert ended(sparsemax.main, [*command, kind, "--attention", kind]) == 0
    assert "best epoch: accuracy " in capsys.readouterr().out
    assert "is there already" in refused(sparsemax.main, [*command, "none"])
    Path("nli.yaml").write_text(yaml.safe_dump({**content, "epochs": 0}))
    assert "nli.yaml: epochs: must be" in refused(sparsemax.main, [*command, "zero"])
    Path("d.jsonl").write_text(
        json.dumps(
            {
                "gold_label": "neutral",
                "sentence1_binary_parse": "( ( A cat ) runs )",
                "sentence2_binary_parse": "( it runs )",
            }
        )
        + "\n"
    )
    capsys.readouterr()
    for data in ("pairs.tsv", "d.jsonl"):
        words = ["nli", "evaluate", "sparsemax", "none", "--data", data, "--output", "out.jsonl"]
        assert ended(sparsemax.main, words) == 0
        assert capsys.readouterr().out.count("100.00") >= 2
    assert json.loads(Path("out.jsonl").read_text())["premise"] == ["a", "cat", "runs"]
    draw = ["nli", "figures", "sparsemax", "--data", "pairs.tsv", "--out", "pictures", "--lines"]
    assert ended(sparsemax.main, [*draw, "2", "5"]) == 0
    assert Path("pictures/line-5.png").stat().st_size > 1000
    assert "line 99 has no pair" in refused(sparsemax.main, [*draw, "99"], progress=True)
