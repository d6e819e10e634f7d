"""The attention classifier of Martins and Astudillo (2016, section 4.3): model and training.

Two GRUs read a premise and a hypothesis, as in Rocktäschel et al. (2015). The hypothesis's last
state attends to the premise's states, by any mapping. `python -m tools.papers.sparsemax nli -h`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onmt_entmax.config import Checked, option
from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_object, write_files
from onmt_entmax.rules import FLAG, SHARE, Rule, positive, whole
from onmt_entmax.sparse import entmax, entmax_loss
from tools.papers.nli_data import (
    LABELS,
    Batch,
    Encoded,
    Pair,
    count_words,
    encode,
    hold_out,
    make_batch,
    read_pairs,
)

ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "sparsemax": 2.0}
_EVALUATED = 256  # pairs in a batch of an evaluation
_POOL = 50  # batches whose pairs are sorted by length
_COUNT = whole(1, 10**6)
_OUTPUT = Rule(float, 1, 10**6, names=tuple(ALPHAS))
ATTENTION = replace(_OUTPUT, names=("none", "logistic", *ALPHAS))


@dataclass(frozen=True)
class Settings(Checked):
    """The configuration of a training.

    Attributes:
        train: file of training pairs.
        lowercase: whether all words are written in small letters.
        min_frequency: rarer words are unknown.
        attention: `none`, `logistic`, a mapping's name or its alpha.
        output: mapping of the output, and so the loss; a name or alpha.
        word_vec_size: of word vectors.
        rnn_size: of projected word vectors, states and attention.
        dropout: of word vectors and of the hypothesis's last state.
        learning_rate: of Adam.
        l2: Adam's weight decay, of all weights but word vectors.
        batch_size: pairs in an update.
        epochs: passes over the training pairs.
        dev: file of pairs that choose the epoch; or
        held_out: share of the training pairs that choose it, with premises of their own.
        embeddings: file of word vectors as text, which stay as they are; empty: all are learned.
        seed: of weights, order and dropout.
    """

    train: str = option(None, Rule(str), required=True)
    lowercase: bool = option(None, FLAG, required=True)
    min_frequency: int = option(None, _COUNT, required=True)
    attention: float | str = option(None, ATTENTION, required=True)
    output: float | str = option(None, _OUTPUT, required=True)
    word_vec_size: int = option(None, _COUNT, required=True)
    rnn_size: int = option(None, _COUNT, required=True)
    dropout: float = option(None, SHARE, required=True)
    learning_rate: float = option(None, positive(100), required=True)
    l2: float = option(None, Rule(float, 0, 100), required=True)
    batch_size: int = option(None, _COUNT, required=True)
    epochs: int = option(None, _COUNT, required=True)
    dev: str = option("", Rule(str))
    held_out: float = option(0.0, SHARE)
    embeddings: str = option("", Rule(str))
    seed: int = option(1, whole(0, 2**63 - 1))


def alpha_of(mapping: float | str) -> float:
    """Return the alpha of a mapping's name; a number is its own."""
    return ALPHAS[mapping] if isinstance(mapping, str) else float(mapping)


# --- model -----------------------------------------------------------------------------------


class PremiseAttention(nn.Module):
    r"""Attention of a hypothesis over the states of a premise.

    .. math:: z_t = v^\top \tanh(W^{pm} h_t + W^{hm} h_N + b^m), \qquad p = f(z)

    where f is entmax, or the logistic function of each score, whose weights have no fixed sum.

    Args:
        size: of the states.
        kind: `logistic`, or a mapping.
    """

    def __init__(self, size: int, kind: float | str) -> None:
        super().__init__()
        self.kind = kind
        self.premise = nn.Linear(size, size, bias=False)
        self.hypothesis = nn.Linear(size, size)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, states: Tensor, query: Tensor, lengths: Tensor) -> Tensor:
        """Return the weights `(batch, length)`, 0 in the padding.

        Args:
            states: `(batch, length, size)` of the premises.
            query: `(batch, size)`, the last state of each hypothesis.
            lengths: `(batch,)` of the premises.
        """
        hidden = torch.tanh(self.premise(states) + self.hypothesis(query).unsqueeze(1))
        padding = torch.arange(states.shape[1]) >= lengths.unsqueeze(1)
        scores = self.score(hidden).squeeze(2).masked_fill(padding, -torch.inf)
        return scores.sigmoid() if self.kind == "logistic" else entmax(scores, alpha_of(self.kind))


class Classifier(nn.Module):
    """The network of Martins and Astudillo (2016).

    Args:
        settings: its sizes and mappings.
        words: size of the vocabulary.
    """

    def __init__(self, settings: Settings, words: int) -> None:
        super().__init__()
        size = settings.rnn_size
        self.embedding = nn.Embedding(words, settings.word_vec_size)
        self.projection = nn.Linear(settings.word_vec_size, size)
        self.premise = nn.GRU(size, size, batch_first=True)
        self.hypothesis = nn.GRU(size, size, batch_first=True)
        self.attention = None
        if settings.attention != "none":
            self.attention = PremiseAttention(size, settings.attention)
        self.combined = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, len(LABELS))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return scores `(batch, labels)`, and weights `(batch, length)` of the premise's words.

        A pair's result does not depend on the others.
        """
        states, last = self._read(self.premise, batch.premises, batch.premise_lengths)
        _, query = self._read(self.hypothesis, batch.hypotheses, batch.hypothesis_lengths, last)
        query, weights, context = self.dropout(query[0]), None, last[0]
        if self.attention is not None:
            weights = self.attention(states, query, batch.premise_lengths)
            context = torch.einsum("bl,bls->bs", weights, states)
        hidden = torch.tanh(self.combined(torch.cat([context, query], 1)))
        return self.output(hidden), weights

    def _read(
        self, gru: nn.GRU, ids: Tensor, lengths: Tensor, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return all states `(batch, length, size)` and the last `(1, batch, size)`."""
        words = self.projection(self.dropout(self.embedding(ids)))
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states, last = gru(packed, first)
        return pad_packed_sequence(states, batch_first=True)[0], last


# --- evaluation ------------------------------------------------------------------------------


class Measures(NamedTuple):
    """Measures of some pairs.

    Attributes:
        accuracy: percent of right labels.
        attended: words of a premise with a weight above zero, mean; None without attention.
            Softmax and the logistic function attend to all, even where a weight rounds to zero.
        words: of a premise, mean.
    """

    accuracy: float
    attended: float | None
    words: float

    def __str__(self) -> str:
        text = f"accuracy {self.accuracy:.2f} %"
        if self.attended is not None:
            text += f", {self.attended:.2f} of {self.words:.2f} words attended"
        return text


class Prediction(NamedTuple):
    """Probabilities of the labels, and the attention to each word of the premise."""

    probabilities: list[float]
    attention: list[float] | None

    @property
    def label(self) -> int:
        """The most probable label; of equal ones, the first."""
        return self.probabilities.index(max(self.probabilities))


@torch.no_grad()
def predict(model: Classifier, settings: Settings, encoded: Sequence[Encoded]) -> list[Prediction]:
    """Return the predictions of a model for encoded pairs."""
    model.eval()
    predictions = []
    for first in range(0, len(encoded), _EVALUATED):
        batch = make_batch(encoded[first : first + _EVALUATED])
        scores, attention = model(batch)
        probabilities = entmax(scores.double(), alpha_of(settings.output)).tolist()
        for row, length in enumerate(batch.premise_lengths.tolist()):
            weights = None if attention is None else attention[row, :length].tolist()
            predictions.append(Prediction(probabilities[row], weights))
    model.train()
    return predictions


def measure(
    settings: Settings, pairs: Sequence[Pair], predictions: Sequence[Prediction]
) -> Measures:
    """Return the measures of predictions."""
    kind, size = settings.attention, len(pairs)
    right = sum(p.label == pair.label for p, pair in zip(predictions, pairs, strict=True))
    words = sum(len(pair.premise) for pair in pairs) / size
    attended: float | None = None
    if kind == "logistic" or (kind != "none" and alpha_of(kind) == 1):
        attended = words
    elif kind != "none":
        attended = sum(w > 0 for p in predictions for w in p.attention or ()) / size
    return Measures(100 * right / size, attended, words)


# --- training --------------------------------------------------------------------------------


def train(settings: Settings, out: Path, say: Callable[[str], None]) -> Measures:
    """Train a classifier, and write its best epoch to a folder whenever there is a better one.

    Args:
        settings: the configuration.
        out: the folder, which must not be there.
        say: prints a line of the log.

    Returns:
        The measures of the best epoch on the pairs that chose it.

    Raises:
        UserError: a file cannot be read or written, or the folder is there already.
    """
    if bool(settings.dev) == bool(settings.held_out):
        raise UserError("give either dev, a file that chooses the epoch, or held_out, a share")
    if out.exists():
        raise UserError(f"{out}: is there already; name another folder")
    pairs = read_pairs(Path(settings.train), settings.lowercase)
    if settings.dev:
        selection = read_pairs(Path(settings.dev), settings.lowercase)
    else:
        pairs, selection = hold_out(pairs, settings.held_out)
    say(f"{counted(len(pairs), 'pair')} to train on, {len(selection):,} to choose the epoch")
    words = count_words(pairs, settings.min_frequency)
    torch.manual_seed(settings.seed)
    model = Classifier(settings, len(words))
    if settings.embeddings:
        say(f"fixed vectors: {_fix_vectors(model, settings, words):,} of {len(words):,} words")
    optimiser = _optimiser_of(model, settings)
    data, selection_data = encode(pairs, words), encode(selection, words)
    description = json.dumps({"settings": asdict(settings), "words": words}, ensure_ascii=False)
    best, log = None, ""
    for epoch in range(1, settings.epochs + 1):
        loss, accuracy = _one_epoch(model, settings, optimiser, data)
        measures = measure(settings, selection, predict(model, settings, selection_data))
        line = {"epoch": epoch, "loss": loss, "train_accuracy": accuracy, **measures._asdict()}
        log += json.dumps(line) + "\n"
        files: dict[Path, str | bytes] = {out / "metrics.jsonl": log}
        if best is None or measures.accuracy > best.accuracy:
            best = measures
            weights = safetensors.torch.save(model.state_dict())
            files |= {out / "model.json": description, out / "model.safetensors": weights}
        write_files(files)
        say(
            f"epoch {epoch}/{settings.epochs}  loss {loss:.4f}  train {accuracy:5.2f} %  {measures}"
        )
    assert best is not None, "there is at least one epoch"
    return best


def _optimiser_of(model: Classifier, settings: Settings) -> torch.optim.Optimizer:
    """Return Adam with weight decay.

    Word vectors have none: Adam would shrink a rare word's vector in all updates that lack it.
    """
    vectors = model.embedding.weight
    others = [weight for weight in model.parameters() if weight is not vectors]
    groups: list[dict[str, Any]] = [
        {"params": others, "weight_decay": settings.l2},
        {"params": [vectors]},
    ]
    return torch.optim.Adam(groups, lr=settings.learning_rate)


def _fix_vectors(model: Classifier, settings: Settings, words: Sequence[str]) -> int:
    """Put given word vectors into a model, for good; return how many there are."""
    weight, learned = model.embedding.weight, torch.ones(len(words), 1)
    vocabulary = Vocabulary(tuple(words))
    vectors = read_vectors(Path(settings.embeddings), "GloVe", vocabulary, settings.word_vec_size)
    for number, vector in vectors.items():
        weight.data[number], learned[number] = vector, 0
    # Adam leaves a weight whose gradient has always been zero as it is.
    weight.register_hook(lambda gradient: gradient * learned)
    return len(vectors)


def _one_epoch(
    model: Classifier, settings: Settings, optimiser: Any, data: Sequence[Encoded]
) -> tuple[float, float]:
    """Update the model with all pairs in a new order; return loss and accuracy in percent.

    Batches have similar lengths, so that the GRUs take half as many steps.
    """
    alpha, size, total, right = alpha_of(settings.output), settings.batch_size, 0.0, 0
    order, batches = torch.randperm(len(data)).tolist(), []
    for begin in range(0, len(data), _POOL * size):
        pool = [data[index] for index in order[begin : begin + _POOL * size]]
        pool.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    for index in torch.randperm(len(batches)).tolist():
        batch = make_batch(batches[index])
        scores, _ = model(batch)
        loss = entmax_loss(scores, batch.labels, alpha)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += loss.item() * len(batch.labels)
        right += int((scores.argmax(1) == batch.labels).sum())
    return total / len(data), 100 * right / len(data)


def load(folder: Path) -> tuple[Settings, list[str], Classifier]:
    """Return settings, vocabulary and model that `train` has written.

    Raises:
        UserError: a file cannot be read, or holds something else.
    """
    description = read_object(folder / "model.json")
    try:
        settings, words = Settings(**description["settings"]), description["words"]
        model = Classifier(settings, len(words))
        model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
    except (KeyError, TypeError, RuntimeError, OSError, safetensors.SafetensorError) as error:
        raise UserError(f"{folder}: not a run of `nli train`, or damaged: {error}") from None
    return settings, words, model
