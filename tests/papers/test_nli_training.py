"""Training on sentence pairs, `tools.papers.nli_training`: held-out pairs, and the loss."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.oracles import loss_oracle
from tests.papers.nli_pairs import SMALL, write_pairs
from tools.papers import nli_training
from tools.papers.nli_batches import encode, make_batch
from tools.papers.nli_data import LABELS, count_words, hold_out
from tools.papers.nli_files import read_pairs
from tools.papers.nli_model import Classifier


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs.tsv")


def test_held_out_pairs_share_no_premise_with_the_others(corpus: Path) -> None:
    trained, held_out = hold_out(read_pairs(corpus, lowercase=True), share=0.2)
    assert held_out
    assert not {pair.premise for pair in trained} & {pair.premise for pair in held_out}


def test_the_logged_loss_is_that_of_the_mapping(corpus: Path, tmp_path: Path) -> None:
    """The only update has all pairs: its loss is that of the random model before it."""
    settings = replace(
        SMALL,
        train=str(corpus),
        output=2,
        epochs=1,
        batch_size=100,  # more than there are pairs
    )
    run = tmp_path / "run"
    nli_training.train(settings, run, say=lambda line: None)
    logged = json.loads((run / "metrics.jsonl").read_text())["loss"]

    trained, _ = hold_out(read_pairs(corpus, settings.lowercase), settings.held_out)
    words = count_words(trained, settings.min_frequency)
    torch.manual_seed(settings.seed)
    before = Classifier(settings, len(words))
    batch = make_batch(encode(trained, words))
    scores = before(batch)[0].detach()  # (pairs, labels)
    one_hot = torch.nn.functional.one_hot(batch.labels, len(LABELS)).double()
    expected = loss_oracle(scores, one_hot, alpha=2).mean().item()
    assert logged == pytest.approx(expected, abs=1e-5)
