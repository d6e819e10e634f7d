"""Training of the attention classifiers of `nli_model.py`.

`python -m tools.papers.sparsemax nli train -h` is the command.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import write_files
from onmt_entmax.sparse import entmax_loss
from tools.papers.nli_batches import Encoded, encode, make_batch
from tools.papers.nli_data import Parts, count_words, hold_out
from tools.papers.nli_files import read_pairs
from tools.papers.nli_model import Classifier
from tools.papers.nli_predictions import Measures, measure, predict
from tools.papers.nli_run import Run, run_files
from tools.papers.nli_settings import Settings, alpha_of

POOL = 50  # batches in a pool of pairs that is sorted by length


def train(settings: Settings, out: Path, say: Callable[[str], None]) -> Measures:
    """Train a classifier; write the measures of all epochs and the best model to a folder.

    Args:
        settings: the configuration.
        out: the folder, which must not exist yet.
        say: prints a line about progress.

    Returns:
        The measures of the best epoch on the pairs that chose it.

    Raises:
        UserError: a file cannot be read or written, or the folder exists.
    """
    if out.exists():
        raise UserError(f"{out}: is there already; name another folder")
    pairs, selection = _read_parts(settings)
    say(f"{counted(len(pairs), 'pair')} to train on, {len(selection):,} to choose the epoch")
    words = count_words(pairs, settings.min_frequency)
    model = _new_model(settings, words, say)
    optimiser = _optimiser_of(model, settings)
    encoded, encoded_selection = encode(pairs, words), encode(selection, words)
    best: Measures | None = None
    metrics = ""
    for epoch in range(1, settings.epochs + 1):
        trained = _one_epoch(model, settings, optimiser, encoded)
        measures = measure(settings, selection, predict(model, settings, encoded_selection))
        metrics += _metrics_line(epoch, trained, measures)
        files: dict[Path, str | bytes] = {out / "metrics.jsonl": metrics}
        if best is None or measures.accuracy > best.accuracy:
            best = measures
            files |= run_files(out, Run(settings, words, model))
        write_files(files)  # together, so that the model is that of the best epoch
        say(
            f"epoch {epoch}/{settings.epochs}  loss {trained.loss:.4f}  "
            f"train {trained.accuracy:5.2f} %  {measures}"
        )
    assert best is not None, "there is at least one epoch"
    return best


def _new_model(settings: Settings, words: Sequence[str], say: Callable[[str], None]) -> Classifier:
    """Return a model with random weights, and with pretrained word vectors if there are any."""
    torch.manual_seed(settings.seed)
    model = Classifier(settings, len(words))
    if settings.embeddings:
        say(f"fixed vectors: {_fix_vectors(model, settings, words):,} of {len(words):,} words")
    return model


def _read_parts(settings: Settings) -> Parts:
    """Return the pairs to train on, and those that choose the epoch.

    Raises:
        UserError: a file cannot be read, there are too few premises to hold out, or the settings
            name both or neither of a file and a share.
    """
    if bool(settings.dev) == bool(settings.held_out):
        raise UserError("give either dev, a file that chooses the epoch, or held_out, a share")
    pairs = read_pairs(Path(settings.train), settings.lowercase)
    if settings.dev:
        return Parts(pairs, read_pairs(Path(settings.dev), settings.lowercase))
    return hold_out(pairs, settings.held_out)


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
    """Put pretrained word vectors into a model, and keep them fixed; return their number."""
    weight = model.embedding.weight  # (words, word_vec_size)
    learned = torch.ones(len(words), 1)  # 0 for a vector that is fixed
    vocabulary = Vocabulary(tuple(words))
    vectors = read_vectors(Path(settings.embeddings), "GloVe", vocabulary, settings.word_vec_size)
    for number, vector in vectors.items():
        weight.data[number] = vector
        learned[number] = 0
    # Without weight decay, Adam does not change a weight whose gradient has always been zero.
    weight.register_hook(lambda gradient: gradient * learned)
    return len(vectors)


class _Epoch(NamedTuple):
    """Means over the pairs of an epoch, measured on each batch before its update.

    Attributes:
        loss: entmax loss in nats.
        accuracy: accuracy in percent.
    """

    loss: float
    accuracy: float


def _metrics_line(epoch: int, trained: _Epoch, measures: Measures) -> str:
    """Return the line of an epoch in metrics.jsonl."""
    values = {"epoch": epoch, "loss": trained.loss, "train_accuracy": trained.accuracy}
    return json.dumps({**values, **measures._asdict()}) + "\n"


def _one_epoch(
    model: Classifier,
    settings: Settings,
    optimiser: torch.optim.Optimizer,
    encoded: Sequence[Encoded],
) -> _Epoch:
    """Update the model with all pairs in a new order; return the means of the epoch."""
    alpha = alpha_of(settings.output)
    total_loss = 0.0
    correct = 0
    for pairs in _batches(encoded, settings.batch_size):
        batch = make_batch(pairs)
        scores, _ = model(batch)  # (batch, labels)
        loss = entmax_loss(scores, batch.labels, alpha)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total_loss += loss.item() * len(batch.labels)
        correct += int((scores.argmax(1) == batch.labels).sum())
    return _Epoch(total_loss / len(encoded), 100 * correct / len(encoded))


def _batches(encoded: Sequence[Encoded], size: int) -> list[list[Encoded]]:
    """Return all pairs in batches, in a random order.

    The pairs of a batch have similar lengths, so that the GRUs take half as many steps: random
    pools of `POOL` batches are sorted by length and cut into batches.
    """
    order = torch.randperm(len(encoded)).tolist()
    batches = []
    for begin in range(0, len(encoded), POOL * size):
        pool = [encoded[index] for index in order[begin : begin + POOL * size]]
        pool.sort(key=lambda pair: len(pair.premise) + len(pair.hypothesis))
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    return [batches[index] for index in torch.randperm(len(batches)).tolist()]
