"""The attention classifier of Martins and Astudillo (2016, section 4.3): model and training.

Two GRUs read a premise and a hypothesis, as in Rocktäschel et al. (2015). The hypothesis's last
state attends to the premise's states, by any mapping.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onmt_entmax.checksums import CheckedFolder, write_list
from onmt_entmax.classify.nli_data import (
    LABELS,
    SPECIALS,
    Batch,
    Encoded,
    Pair,
    count_words,
    encode,
    hold_out,
    make_batch,
    read_pairs,
)
from onmt_entmax.classify.settings import checked
from onmt_entmax.data.vectors import fill, read_vectors
from onmt_entmax.data.vocabulary import Vocabulary, VocabularyError
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import write_files, write_folder
from onmt_entmax.options.train import ALPHAS
from onmt_entmax.parsing import ParseError, parse_json
from onmt_entmax.rules import FLAG, SHARE, Rule, number, one_of, positive, whole
from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.train.log import duration
from onmt_entmax.version import __version__
from onmt_entmax.weights import WeightsError, copy_weights, parsed_weights

NONE, LOGISTIC = "none", "logistic"
MAPPINGS = tuple(name for name, alpha in ALPHAS.items() if alpha is not None)
FORMAT = 1
DESCRIPTION, WEIGHTS, LOG = "model.json", "model.safetensors", "metrics.jsonl"
_LARGEST = 1 << 32  # bytes of a file of a run
_EVALUATED = 256  # pairs in a batch of an evaluation
_POOL = 50  # batches whose pairs are sorted by length


class NLIError(UserError):
    """A training or a model that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """The configuration of a training.

    Attributes:
        train: file of training pairs.
        dev: file of pairs that choose the epoch; or
        held_out: share of the training pairs that choose it, with premises of their own.
        embeddings: file of word vectors, which stay as they are; empty: all vectors are learned.
        embeddings_type: format of that file.
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
        seed: of weights, order and dropout.
    """

    train: str
    lowercase: bool
    min_frequency: int
    attention: float | str
    output: float | str
    word_vec_size: int
    rnn_size: int
    dropout: float
    learning_rate: float
    l2: float
    batch_size: int
    epochs: int
    dev: str = ""
    held_out: float = 0.0
    embeddings: str = ""
    embeddings_type: str = "GloVe"
    seed: int = 1


_SIZE = whole(1, 10_000)
RULES = {
    "train": Rule(str),
    "dev": Rule(str),
    "held_out": SHARE,
    "embeddings": Rule(str),
    "embeddings_type": one_of("GloVe", "word2vec"),
    "lowercase": FLAG,
    "min_frequency": whole(1, 10**9),
    "attention": Rule(float, 1, 10**6, names=(NONE, LOGISTIC, *MAPPINGS)),
    "output": Rule(float, 1, 10**6, names=MAPPINGS),
    "word_vec_size": _SIZE,
    "rnn_size": _SIZE,
    "dropout": SHARE,
    "learning_rate": positive(1000),
    "l2": number(0, 1000),
    "batch_size": whole(1, 100_000),
    "epochs": whole(1, 100_000),
    "seed": whole(0, 2**32 - 1),
}


def alpha_of(mapping: float | str) -> float:
    """Return the alpha of a mapping's name; a number is its own."""
    alpha = ALPHAS[mapping] if isinstance(mapping, str) else mapping
    assert alpha is not None, "the rules have no such name"
    return float(alpha)


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
        """Return the weights ``(batch, length)``, 0 in the padding.

        Args:
            states: ``(batch, length, size)`` of the premises.
            query: ``(batch, size)``, the last state of each hypothesis.
            lengths: ``(batch,)`` of the premises.
        """
        hidden = torch.tanh(self.premise(states) + self.hypothesis(query).unsqueeze(1))
        padding = torch.arange(states.shape[1]) >= lengths.unsqueeze(1)
        scores = self.score(hidden).squeeze(2).masked_fill(padding, -torch.inf)
        return scores.sigmoid() if self.kind == LOGISTIC else entmax(scores, alpha_of(self.kind))


class Output(NamedTuple):
    """What a model says about a batch.

    Attributes:
        scores: ``(batch, labels)``.
        attention: weights ``(batch, length)`` of the premise's words; None without attention.
    """

    scores: Tensor
    attention: Tensor | None


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
        if settings.attention != NONE:
            self.attention = PremiseAttention(size, settings.attention)
        self.combined = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, len(LABELS))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, batch: Batch) -> Output:
        """Classify a batch. A pair's result does not depend on the others."""
        states, last = self._read(self.premise, batch.premises, batch.premise_lengths)
        _, query = self._read(self.hypothesis, batch.hypotheses, batch.hypothesis_lengths, last)
        query = self.dropout(query[0])
        if self.attention is None:
            weights, context = None, last[0]
        else:
            weights = self.attention(states, query, batch.premise_lengths)
            context = torch.einsum("bl,bls->bs", weights, states)
        hidden = torch.tanh(self.combined(torch.cat([context, query], 1)))
        return Output(self.output(hidden), weights)

    def _read(
        self, gru: nn.GRU, ids: Tensor, lengths: Tensor, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return all states ``(batch, length, size)`` and the last ``(1, batch, size)``."""
        words = self.projection(self.dropout(self.embedding(ids)))
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states, last = gru(packed, first)
        return pad_packed_sequence(states, batch_first=True)[0], last


# --- training --------------------------------------------------------------------------------


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
        attended = "" if self.attended is None else f"  {self.attended:.2f} words attended"
        return f"accuracy {self.accuracy:.2f} %{attended}"


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
    found = []
    for first in range(0, len(encoded), _EVALUATED):
        batch = make_batch(encoded[first : first + _EVALUATED])
        scores, attention = model(batch)
        probabilities = entmax(scores.double(), alpha_of(settings.output)).tolist()
        for row, length in enumerate(batch.premise_lengths.tolist()):
            weights = None if attention is None else attention[row, :length].tolist()
            found.append(Prediction(probabilities[row], weights))
    model.train()
    return found


def measure(
    settings: Settings, encoded: Sequence[Encoded], predictions: Sequence[Prediction]
) -> Measures:
    """Return the measures of predictions."""
    kind, size = settings.attention, len(encoded)
    right = sum(p.label == label for p, (_, _, label) in zip(predictions, encoded, strict=True))
    words = sum(len(premise) for premise, _, _ in encoded) / size
    attended: float | None = None
    if kind == LOGISTIC or (kind != NONE and alpha_of(kind) == 1):
        attended = words
    elif kind != NONE:
        attended = sum(w > 0 for p in predictions for w in p.attention or ()) / size
    return Measures(100 * right / size, attended, words)


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
        raise NLIError("give either dev, a file that chooses the epoch, or held_out, a share")
    if out.exists() or out.is_symlink():
        raise NLIError(f"{out}: is there already; name another folder")
    pairs, chosen_on = _read(settings, say)
    vocabulary = count_words(pairs, settings.min_frequency)
    torch.manual_seed(settings.seed)
    model = Classifier(settings, len(vocabulary))
    if settings.embeddings:
        say(_fix_vectors(model, settings, vocabulary))
    optimizer = _adam(model, settings)
    data, selection = encode(pairs, vocabulary), encode(chosen_on, vocabulary)
    run = _Run(settings, vocabulary, out)
    best: Measures | None = None
    began = time.monotonic()
    for epoch in range(1, settings.epochs + 1):
        loss, accuracy = _one_epoch(model, settings, optimizer, data)
        measures = measure(settings, selection, predict(model, settings, selection))
        run.note(epoch, loss, accuracy, measures)
        better = best is None or measures.accuracy > best.accuracy
        if better:
            best = measures
            run.write(model)
        seconds = time.monotonic() - began
        left = duration(seconds / epoch * (settings.epochs - epoch))
        say(
            f"{time.strftime('%H:%M:%S')}  epoch {epoch:{len(str(settings.epochs))}}"
            f"/{settings.epochs}  {left:>7} left  loss {loss:.4f}  train accuracy {accuracy:5.2f} %"
            f"  selection {measures}{'  best so far' if better else ''}"
        )
    assert best is not None, "there is at least one epoch"
    run.write_log()
    return best


def _read(settings: Settings, say: Callable[[str], None]) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to train on, and those that choose the epoch."""
    pairs, unlabelled = read_pairs(Path(settings.train), settings.lowercase)
    if settings.held_out:
        pairs, selection = hold_out(pairs, settings.held_out)
        source = "held out, with premises of their own"
    else:
        selection, more = read_pairs(Path(settings.dev), settings.lowercase)
        unlabelled += more
        source = settings.dev
    chosen = f"{len(selection):,} to choose the epoch ({source})"
    say(f"{counted(len(pairs), 'pair')} to train on, {chosen}")
    if unlabelled:
        say(f"{counted(unlabelled, 'pair')} without a label left out")
    return pairs, selection


def _fix_vectors(model: Classifier, settings: Settings, vocabulary: Vocabulary) -> str:
    """Put given word vectors into a model, for good; return how many there are."""
    path, weight = Path(settings.embeddings), model.embedding.weight
    vectors = read_vectors(path, settings.embeddings_type, vocabulary, settings.word_vec_size)
    fill(weight, vectors)
    learned = torch.ones(len(vocabulary), 1)
    learned[list(vectors)] = 0
    # Adam leaves a weight whose gradient has always been zero as it is.
    weight.register_hook(lambda gradient: gradient * learned)
    words = counted(len(vocabulary), "word")
    return f"{path}: has vectors of {len(vectors):,} of {words}; these stay fixed"


def _adam(model: Classifier, settings: Settings) -> torch.optim.Adam:
    """Return the optimiser.

    Word vectors have no L2: Adam would shrink a rare word's vector in all updates that lack it.
    """
    vectors = model.embedding.weight
    others = [weight for weight in model.parameters() if weight is not vectors]
    groups: list[dict[str, Any]] = [
        {"params": others, "weight_decay": settings.l2},
        {"params": [vectors]},
    ]
    return torch.optim.Adam(groups, lr=settings.learning_rate)


def _batches(data: Sequence[Encoded], size: int) -> list[list[Encoded]]:
    """Return pairs in batches of similar lengths, in a random order; the GRUs then take half as
    many steps."""
    order = torch.randperm(len(data)).tolist()
    batches = []
    for first in range(0, len(data), _POOL * size):
        pool = [data[i] for i in order[first : first + _POOL * size]]
        pool.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in torch.randperm(len(batches)).tolist()]


def _one_epoch(
    model: Classifier,
    settings: Settings,
    optimizer: torch.optim.Optimizer,
    data: Sequence[Encoded],
) -> tuple[float, float]:
    """Update the model with all pairs in a new order; return loss and accuracy in percent."""
    alpha, total, right = alpha_of(settings.output), 0.0, 0
    for encoded in _batches(data, settings.batch_size):
        batch = make_batch(encoded)
        scores = model(batch).scores
        loss = entmax_loss(scores, batch.labels, alpha)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch.labels)
        right += int((scores.argmax(1) == batch.labels).sum())
    return total / len(data), 100 * right / len(data)


# --- files -----------------------------------------------------------------------------------


class _Run:
    """The folder of a run: description, weights of the best epoch, log, checksums."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary, out: Path) -> None:
        self._out = out
        self._log: list[dict[str, Any]] = []
        described = {
            "format": FORMAT,
            "package_version": __version__,
            "settings": asdict(settings),
            "words": vocabulary.tokens,
        }
        self._description = json.dumps(described, ensure_ascii=False)

    def note(self, epoch: int, loss: float, accuracy: float, selection: Measures) -> None:
        """Add an epoch to the log."""
        line = {"epoch": epoch, "loss": loss, "train_accuracy": accuracy}
        self._log.append({**line, **selection._asdict()})

    def _lines(self) -> str:
        return "".join(f"{json.dumps(line)}\n" for line in self._log)

    def write(self, model: Classifier) -> None:
        """Write the folder with the weights of now."""

        def fill_folder(folder: Path) -> None:
            folder.mkdir()
            weights = safetensors.torch.save(model.state_dict())
            description, log = folder / DESCRIPTION, folder / LOG
            write_files(
                {description: self._description, folder / WEIGHTS: weights, log: self._lines()}
            )
            write_list(folder)

        write_folder(self._out, fill_folder)

    def write_log(self) -> None:
        """Write the log of all epochs."""
        write_files({self._out / LOG: self._lines()})
        write_list(self._out)


class Trained(NamedTuple):
    """A classifier in memory."""

    settings: Settings
    vocabulary: Vocabulary
    model: Classifier


def load(folder: Path) -> Trained:
    """Read what `train` has written.

    Raises:
        UserError: a file cannot be read, its checksum differs, or it holds something else.
    """
    if not (folder / DESCRIPTION).is_file():
        raise NLIError(f"{folder}: no {DESCRIPTION}; is it a folder that `nli train` has written?")
    files, path = CheckedFolder(folder), folder / DESCRIPTION
    try:
        described = parse_json(files.read(DESCRIPTION, _LARGEST).decode("utf-8"))
    except (ParseError, UnicodeDecodeError) as error:
        raise NLIError(f"{path}: {error}") from None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise NLIError(f"{path}: not of format {FORMAT}; it was written by another version")
    given, words = described.get("settings"), described.get("words")
    if not isinstance(given, dict) or not isinstance(words, list):
        raise NLIError(f"{path}: settings or words are missing")
    settings = checked(given, Settings, RULES, str(path))
    try:
        vocabulary = Vocabulary(tuple(map(str, words)))
    except VocabularyError as error:
        raise NLIError(f"{path}: {error}") from None
    if tuple(words[: len(SPECIALS)]) != SPECIALS:
        raise NLIError(f"{path}: words must begin with {', '.join(SPECIALS)}")
    return Trained(settings, vocabulary, _with_weights(settings, len(vocabulary), files))


def _with_weights(settings: Settings, words: int, files: CheckedFolder) -> Classifier:
    """Return the saved classifier; a network larger than its file is refused before it is made."""
    path = files.path / WEIGHTS
    content = files.read(WEIGHTS, _LARGEST)
    with torch.device("meta"):
        size = sum(weight.numel() for weight in Classifier(settings, words).parameters())
    if len(content) < 4 * size:
        raise NLIError(f"{path}: cut short or damaged: {size:,} weights do not fit in it")
    model = Classifier(settings, words)
    try:
        copy_weights(model, parsed_weights(content))
    except WeightsError as error:
        raise NLIError(f"{path}: {error}") from None
    return model
