"""Softmax models of words: where our output is not OpenNMT-py's, ours is more probable.

OpenNMT-py ends a sequence only if the end symbol is among the best tokens of the whole beam, and at
the length limit it returns prefixes without one. Our beam counts every end of a live prefix.
"""

import argparse
import random
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import build_model
from tests.models import words
from tools.bench.search import opennmt_side, our_side

WORDS = 2000
VOCABULARIES = words(*([f"{side}{i}" for i in range(WORDS)] for side in "st"))


@pytest.mark.parametrize(("spread", "end"), [(0.1, 0.0), (1.0, 0.0), (1.0, 3.0), (2.0, 6.0)])
def test_an_output_that_differs_is_more_probable(tmp_path: Path, spread: float, end: float) -> None:
    torch.manual_seed(0)
    sizes = {"rnn_size": 32, "src_word_vec_size": 32, "tgt_word_vec_size": 32}
    layers = {"enc_layers": 1, "dec_layers": 1}
    config = ModelConfig(encoder_type="brnn", param_init=spread, **sizes, **layers)
    model = build_model(config, VOCABULARIES).eval()
    with torch.no_grad():
        model.generator.bias[VOCABULARIES.target.eos] += end
    save(tmp_path / "model", model, config, VOCABULARIES, {})
    draw = random.Random(1)
    lines = [
        " ".join(f"s{draw.randrange(WORDS)}" for _ in range(draw.randint(3, 12))) for _ in range(20)
    ]
    options = argparse.Namespace(beam=5, min_length=0, max_length=12, opennmt_batch=20, batch=20)
    stock = opennmt_side(tmp_path / "model", lines, options)()
    ours = our_side(tmp_path / "model", lines, options, "exhaustive")()
    model.double()

    @torch.no_grad()
    def log_prob(line: str, output: str) -> float:
        """Log-probability of an output with its end, in float64."""
        source = VOCABULARIES.source.encode(line.split())
        target = VOCABULARIES.target.encode(output.split())
        hidden, index = model.hidden_states(
            make_batch([Example(list(source), list(target), 0)], VOCABULARIES)
        )
        return float(model.generator.log_probs(hidden).gather(1, index[:, None]).sum())

    differ = [(line, a, b) for line, a, b in zip(lines, stock, ours, strict=True) if a != b]
    assert differ
    for line, theirs, mine in differ:
        assert log_prob(line, mine) >= log_prob(line, theirs) - 1e-5
