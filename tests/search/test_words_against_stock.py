"""Softmax models of words: where our output is not OpenNMT-py's, ours is at least as probable.

OpenNMT-py ends a sequence only if the end symbol is among the best tokens of the whole beam, and at
the length limit it returns prefixes without one. Our beam counts every end of a live prefix.
"""

import random
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model
from tests.models import vocabularies_of
from tools.bench.search_sides import Limits, opennmt_side, our_side

WORDS = 2000  # of each language
SENTENCES = 20  # all in one batch
LIMITS = Limits(beam=5, min_length=0, max_length=12)
ROUNDING = 1e-5  # error of a log-probability in float32, by which a search may confuse two outputs
VOCABULARIES = vocabularies_of(
    source=[f"s{number}" for number in range(WORDS)],
    target=[f"t{number}" for number in range(WORDS)],
)


def write_model(folder: Path, spread: float, end: float) -> SparseNMTModel:
    """Write a random model of words and return it.

    Args:
        folder: folder to write.
        spread: largest initial weight.
        end: what is added to the score of the end symbol.
    """
    torch.manual_seed(0)
    config = ModelConfig(
        encoder_type="brnn",
        enc_layers=1,
        dec_layers=1,
        rnn_size=32,
        src_word_vec_size=32,
        tgt_word_vec_size=32,
        param_init=spread,
    )
    model = build_model(config, VOCABULARIES).eval()
    with torch.no_grad():
        model.generator.bias[VOCABULARIES.target.eos] += end
    save(folder, model, config, VOCABULARIES, {})
    return model


def random_lines(count: int) -> list[str]:
    """Return source sentences of 3 to 12 random words, always the same."""
    rng = random.Random(1)
    return [
        " ".join(f"s{rng.randrange(WORDS)}" for _ in range(rng.randint(3, 12)))
        for _ in range(count)
    ]


@torch.no_grad()
def log_prob(model: SparseNMTModel, source: str, output: str) -> float:
    """Return the log-probability of an output and its end symbol, from teacher forcing."""
    source_ids = VOCABULARIES.source.encode(source.split())
    target_ids = VOCABULARIES.target.encode(output.split())
    batch = make_batch([Example(list(source_ids), list(target_ids), 0)], VOCABULARIES)
    hidden, index = model.hidden_states(batch)
    return float(model.generator.log_probs(hidden).gather(1, index[:, None]).sum())


@pytest.mark.parametrize(
    ("spread", "end"),
    [
        pytest.param(0.1, 0.0, id="flat"),
        pytest.param(1.0, 0.0, id="peaked"),
        pytest.param(1.0, 3.0, id="ends are likely"),
        pytest.param(2.0, 6.0, id="sharp, ends are likely"),
    ],
)
def test_an_output_that_differs_is_at_least_as_probable(
    tmp_path: Path, spread: float, end: float
) -> None:
    """Both searches are in float32; both outputs are scored again in float64."""
    model = write_model(tmp_path / "model", spread, end)
    lines = random_lines(SENTENCES)
    theirs = opennmt_side(tmp_path / "model", lines, LIMITS, SENTENCES)()
    ours = our_side(tmp_path / "model", lines, LIMITS, SENTENCES, stop="exhaustive")()
    outputs = zip(lines, theirs, ours, strict=True)
    different = [(line, their, our) for line, their, our in outputs if their != our]
    assert different, "the test shows nothing"
    exact = model.double()
    for line, their, our in different:
        assert log_prob(exact, line, our) >= log_prob(exact, line, their) - ROUNDING
