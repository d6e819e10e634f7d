"""Checkpoints for OpenNMT-py are written of recurrent softmax models only."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.model import build_model
from tests.models import vocabularies_of
from tools.bench.stock_checkpoints import write_opennmt_checkpoint

VOCABULARIES = vocabularies_of(source=["a"], target=["b"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param(
            {"encoder_type": "transformer", "decoder_type": "transformer"},
            "only recurrent models",
            id="a Transformer",
        ),
        pytest.param({"generator_alpha": 1.5}, "softmax model", id="entmax in the output"),
        pytest.param({"global_attention_alpha": 1.5}, "softmax model", id="entmax in attention"),
    ],
)
def test_another_model_is_refused(
    options: dict[str, str | float], reason: str, tmp_path: Path
) -> None:
    sizes = {"rnn_size": 8, "src_word_vec_size": 8, "tgt_word_vec_size": 8}
    config = ModelConfig(**{"generator_alpha": 1.0, **sizes, **options})
    save(tmp_path / "model", build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    with pytest.raises(ValueError, match=reason):
        write_opennmt_checkpoint(load(tmp_path / "model"), tmp_path / "checkpoint.pt")
    assert not (tmp_path / "checkpoint.pt").exists()
