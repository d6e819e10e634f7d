"""The attention classifier: its mathematics, its training, and its files."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from onmt_entmax.classify.nli import (
    MAPPINGS,
    RULES,
    Classifier,
    NLIError,
    Prediction,
    PremiseAttention,
    Settings,
    alpha_of,
    load,
    measure,
    predict,
    train,
)
from onmt_entmax.classify.nli_data import LABELS, encode, hold_out, make_batch, read_pairs
from onmt_entmax.classify.settings import SettingsError, read_settings
from onmt_entmax.errors import UserError
from tests.oracles import entmax_oracle, loss_oracle

FILES = sorted((Path(__file__).resolve().parents[2] / "config" / "nli").glob("*.yaml"))
KINDS = ["logistic", "softmax", 1.5, "sparsemax", 3]
SMALL = Settings(
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
ANIMALS, VERBS = "dog cat bird".split(), "runs sleeps".split()


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The animal of the premise decides."""
    monkeypatch.chdir(tmp_path)
    rows = ["sentence_A\tsentence_B\tentailment_judgment"]
    for n in range(24):
        verb = VERBS[n // 3 % 2]
        rows.append(f"A {ANIMALS[n % 3]} {verb}{' today' * (n % 4)}\tit {verb}\t{LABELS[n % 3]}")
    Path("pairs.tsv").write_text("\n".join(rows) + "\n")


def quiet(line: str) -> None:
    """Print nothing."""


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    torch.manual_seed(0)
    attention = PremiseAttention(4, kind).double()
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
            expected = entmax_oracle(torch.tensor(scores), alpha_of(kind))
        assert torch.allclose(weights[n, :length], expected, atol=1e-6)
        assert not weights[n, length:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_the_attention(kind: float | str) -> None:
    torch.manual_seed(2)
    attention = PremiseAttention(3, kind).double()
    states, query = torch.randn(2, 4, 3).double(), torch.randn(2, 3).double()
    inputs = [states.requires_grad_(), query.requires_grad_()]
    lengths = torch.tensor([4, 2])

    def context(states: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bl,bls->bs", attention(states, query, lengths), states)

    assert torch.autograd.gradcheck(context, inputs)


@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_the_other_pairs_of_a_batch_change_nothing(kind: float | str) -> None:
    """Whatever stands in the padding."""
    torch.manual_seed(0)
    model = Classifier(replace(SMALL, attention=kind), 20).double()
    pairs = [
        (torch.randint(20, (premise,)), torch.randint(20, (hypothesis,)), 0)
        for premise, hypothesis in [(3, 2), (9, 1), (1, 7)]
    ]
    together = make_batch(pairs)
    beyond = torch.arange(9) >= together.premise_lengths.unsqueeze(1)
    together = together._replace(premises=together.premises.masked_fill(beyond, 7))
    scores, weights = model(together)
    for n, pair in enumerate(pairs):
        alone = model(make_batch([pair]))
        assert torch.allclose(scores[n], alone.scores[0], atol=1e-12)
        if weights is not None:
            assert torch.allclose(weights[n, : len(pair[0])], alone.attention[0], atol=1e-12)


def test_the_hypothesis_is_read_after_the_premise() -> None:
    """Its first state is the premise's last, even without attention."""
    torch.manual_seed(0)
    model = Classifier(replace(SMALL, attention="none"), 20)
    batch = make_batch([(torch.tensor([4, 5]), torch.tensor([2, 6]), 0)])
    words = model.projection(model.embedding(batch.hypotheses))
    _, last = model.premise(model.projection(model.embedding(batch.premises)))
    _, query = model.hypothesis(words, last)
    hidden = torch.tanh(model.combined(torch.cat([last[0], query[0]], 1)))
    assert torch.allclose(model(batch).scores, model.output(hidden), atol=1e-6)


@pytest.mark.parametrize(
    ("attention", "output"), [("none", "softmax"), ("logistic", 1.5), ("sparsemax", "softmax")]
)
def test_a_tiny_corpus_is_learned(attention: str, output: float | str) -> None:
    chosen_on = {"held_out": 0.0, "dev": "pairs.tsv", "epochs": 12}
    settings = replace(SMALL, attention=attention, output=output, **chosen_on)
    lines: list[str] = []
    best = train(settings, Path("run"), lines.append)
    assert best.accuracy == 100
    assert "left" in lines[-1]
    log = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in log] == list(range(1, 13))
    trained = load(Path("run"))
    assert trained.settings == settings
    encoded = encode(read_pairs(Path("pairs.tsv"), True).pairs, trained.vocabulary)
    predictions = predict(trained.model, settings, encoded)
    assert measure(settings, encoded, predictions).accuracy == 100


@pytest.mark.parametrize(
    ("kind", "attended"),
    [("none", None), ("logistic", 2.5), ("softmax", 2.5), (1, 2.5), ("entmax15", 2), (2, 2)],
)
def test_measures(kind: float | str, attended: float | None) -> None:
    """Softmax and the logistic function attend to all words, even with a weight that is 0."""
    pairs = [(torch.tensor([3, 4]), torch.tensor([2]), 0), (torch.tensor([3, 4, 5]), None, 2)]
    predictions = [Prediction([0.6, 0.4, 0], [0.5, 0.5]), Prediction([0.6, 0.4, 0], [0.1, 0, 0.9])]
    measures = measure(replace(SMALL, attention=kind), pairs, predictions)
    assert (measures.accuracy, measures.attended, measures.words) == (50, attended, 2.5)


def test_the_output_decides_loss_and_probabilities() -> None:
    settings = replace(SMALL, output=2, epochs=1, batch_size=100, learning_rate=1e-9)
    train(settings, Path("run"), quiet)
    _, vocabulary, model = load(Path("run"))
    kept, _ = hold_out(read_pairs(Path("pairs.tsv"), True).pairs, SMALL.held_out)
    encoded = encode(kept, vocabulary)
    batch = make_batch(encoded)
    scores = model(batch).scores.detach()
    probabilities = [p.probabilities for p in predict(model, settings, encoded)]
    assert torch.allclose(torch.tensor(probabilities).double(), entmax_oracle(scores, 2))
    losses = loss_oracle(scores, torch.nn.functional.one_hot(batch.labels, 3).double(), 2)
    (line,) = Path("run/metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["loss"] == pytest.approx(losses.mean().item(), abs=1e-5)


def test_the_seed_decides_and_the_best_epoch_is_kept() -> None:
    settings = replace(SMALL, dropout=0.2)
    lines: list[str] = []
    for name in "one", "two":
        train(settings, Path(name), lines.append)
    assert lines[0].startswith("18 pairs to train on, 6 to choose the epoch (held out")
    train(replace(settings, seed=2), Path("three"), quiet)
    one, two, three = (Path(n, "model.safetensors").read_bytes() for n in ("one", "two", "three"))
    assert one == two != three
    log = [json.loads(line) for line in Path("one/metrics.jsonl").read_text().splitlines()]
    best = max(log, key=lambda line: line["accuracy"])["epoch"]
    train(replace(settings, epochs=best), Path("short"), quiet)
    assert Path("short/model.safetensors").read_bytes() == one


def test_given_vectors_stay_and_others_are_learned() -> None:
    vector = [0.5, -1, 2, 0, 0.25, 3] * 2
    Path("vectors.txt").write_text("dog " + " ".join(map(str, vector)) + "\n")
    settings = replace(SMALL, embeddings="vectors.txt", epochs=2, l2=0.1)
    lines: list[str] = []
    train(settings, Path("run"), lines.append)
    assert "vectors.txt: has vectors of 1 of 11 words; these stay fixed" in lines
    _, vocabulary, model = load(Path("run"))
    (dog,) = vocabulary.encode(["dog"])
    assert model.embedding.weight[dog].tolist() == vector


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held_out": 0.0}, "give either dev"),
        ({"dev": "pairs.tsv"}, "give either dev"),
        ({"held_out": 0.999}, "too few different premises to hold out 0.999"),
        ({"train": "nothing"}, "nothing: cannot be read"),
        ({"embeddings": "pairs.tsv"}, "pairs.tsv: "),
    ],
)
def test_a_training_that_cannot_be_done(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        train(replace(SMALL, **change), Path("run"), quiet)


def test_a_run_is_not_overwritten() -> None:
    Path("run").mkdir()
    with pytest.raises(NLIError, match="is there already"):
        train(SMALL, Path("run"), quiet)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_configurations_of_the_repository(path: Path) -> None:
    settings = read_settings(path, Settings, RULES)
    with torch.device("meta"):
        Classifier(settings, words=9)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("atention", "softmax", "unknown key 'atention'; did you mean 'attention'?"),
        ("attention", "soft", "attention must be none or logistic or softmax"),
        ("attention", 0.5, "attention must be"),
        ("output", "logistic", "output must be softmax or"),
        ("epochs", 1.5, "epochs must be a whole number"),
        ("dropout", 1, "dropout must be"),
        ("lowercase", "yes", "lowercase must be true or false"),
        ("epochs", None, "epochs is missing"),
    ],
)
def test_a_configuration_is_read_strictly(key: str, value: object, message: str) -> None:
    content = {**asdict(SMALL), key: value}
    if value is None:
        del content[key]
    Path("nli.yaml").write_text(json.dumps(content))
    with pytest.raises(SettingsError, match=message) as caught:
        read_settings(Path("nli.yaml"), Settings, RULES)
    assert str(caught.value).startswith("nli.yaml: ")


@pytest.fixture
def run() -> Path:
    train(replace(SMALL, epochs=1), Path("run"), quiet)
    return Path("run")


def test_damage_to_a_run_is_noticed(run: Path) -> None:
    weights = run / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"run/model\.safetensors: .*checksum differs"):
        load(run)
    with pytest.raises(NLIError, match=r"nowhere: no model\.json"):
        load(Path("nowhere"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "not of format 1"),
        ({"words": [1]}, "special token"),
        ({"words": ["<blank>", "<unk>", "<s>"]}, "words must begin with"),
        ({"settings": {"epochs": 1}}, "train is missing"),
        ({"settings": {**asdict(SMALL), "rnn_size": 10_000}}, "cut short or damaged"),
        ({"settings": {**asdict(SMALL), "rnn_size": 7}}, "where the model has"),
        ({"settings": None}, "settings or words are missing"),
    ],
)
def test_a_strange_description_is_refused(
    run: Path, change: dict[str, object], message: str
) -> None:
    (run / "SHA256SUMS").unlink()
    path = run / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=message):
        load(run)


def test_names_of_mappings() -> None:
    assert [alpha_of(name) for name in MAPPINGS] == [1, 1.5, 2]
    assert len(LABELS) == 3
