"""Attention over sentence pairs, `tools.papers.sparsemax nli`: training, evaluation, pictures."""

import io
import json
import shutil
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import yaml
from torch import Tensor

from tests.in_process import exit_status, refusal
from tests.oracles import entmax_oracle, loss_oracle
from tools.papers import nli, nli_data, nli_model, nli_predictions, sparsemax
from tools.papers.nli_data import Batch, Encoded


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


def scores_by_formula(
    attention: nli_model.PremiseAttention, states: Tensor, query: Tensor
) -> Tensor:
    """Return the scores `(positions,)` of one premise, position by position.

    Args:
        attention: of size 4.
        states: `(positions, 4)`.
        query: `(4,)`.
    """
    scores = []
    for state in states:
        hidden = attention.premise.weight @ state
        hidden = hidden + attention.hypothesis.weight @ query
        hidden = hidden + attention.hypothesis.bias
        scores.append((attention.score.weight[0] @ hidden.tanh()).item())
    return torch.tensor(scores).double()


def mapped(kind: float | str, scores: Tensor) -> Tensor:
    """Return the weights `(positions,)` of scores, by definition."""
    if kind == "logistic":
        return 1 / (1 + torch.exp(-scores))
    return entmax_oracle(scores, nli.alpha_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = nli_model.PremiseAttention(4, kind).double()
    states = 3 * torch.randn(3, 5, 4).double()  # (sentences, positions, size)
    query = torch.randn(3, 4).double()
    lengths = torch.tensor([5, 1, 3])
    weights = attention(states, query, lengths)
    for sentence, length in enumerate(lengths.tolist()):
        scores = scores_by_formula(attention, states[sentence, :length], query[sentence])
        torch.testing.assert_close(
            weights[sentence, :length], mapped(kind, scores), atol=1e-6, rtol=0
        )


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
    pairs = [
        nli.Pair(("a", "a"), ("b",), label=0, line=1),
        nli.Pair(("a", "a", "a"), ("b",), label=2, line=2),
    ]
    weights = [[0.5, 0.5], [0.1, 0, 0.9]]
    predictions = [nli_predictions.Prediction([0.6, 0.4, 0], each) for each in weights]
    measures = nli.measure(replace(SMALL, attention=kind), pairs, predictions)
    assert measures == nli.Measures(accuracy=50, attended=attended, words=2.5)


@pytest.fixture
def corpus() -> Path:
    return write_pairs(Path("pairs.tsv"))


class Update(NamedTuple):
    """A model after one update, whose learning rate is too small to change it, and its pairs."""

    settings: nli.Settings
    model: nli.Classifier
    encoded: list[Encoded]
    """The training pairs."""
    batch: Batch
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
            assert exit_status(sparsemax.main, [*TRAIN, kind, "--attention", kind]) == 0
    return Trained(folder, printed.getvalue())


@pytest.fixture
def models(trained: Trained) -> None:
    """The models in the working directory."""
    shutil.copytree(trained.folder, Path(), dirs_exist_ok=True)


def test_training_prints_its_best_epoch(trained: Trained) -> None:
    assert "best epoch: accuracy " in trained.printed


@pytest.mark.usefixtures("models")
def test_a_model_is_not_overwritten() -> None:
    assert "is there already" in refusal(sparsemax.main, [*TRAIN, "none"])


@pytest.mark.usefixtures("corpus")
def test_a_training_without_epochs_is_refused() -> None:
    write_nli_settings(epochs=0)
    assert "nli.yaml: epochs: must be" in refusal(sparsemax.main, [*TRAIN, "zero"])


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
    """Each has learned all pairs."""
    assert exit_status(sparsemax.main, [*EVALUATE, data]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for run in ("sparsemax", "none"):
        seed = "1"
        assert [run, run, seed, "100.00"] in [row[:4] for row in rows]


def test_predictions_have_the_words_of_the_parses(snli: Path) -> None:
    assert exit_status(sparsemax.main, [*EVALUATE, str(snli)]) == 0
    assert json.loads(Path("out.jsonl").read_text())["premise"] == ["a", "cat", "runs"]


DRAW = ["nli", "figures", "sparsemax", "--data", "pairs.tsv", "--out", "pictures", "--lines"]


@pytest.mark.usefixtures("models")
def test_attention_of_lines_is_drawn() -> None:
    assert exit_status(sparsemax.main, [*DRAW, "2", "5"]) == 0
    for line in ("2", "5"):
        assert Path(f"pictures/line-{line}.png").stat().st_size > 1000


@pytest.mark.usefixtures("models")
def test_a_line_that_is_not_there_is_named() -> None:
    assert "line 99 has no pair" in refusal(sparsemax.main, [*DRAW, "99"], progress=True)
