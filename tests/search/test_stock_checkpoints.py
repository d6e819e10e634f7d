"""Checkpoints for OpenNMT-py are written of recurrent softmax models only."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.model import build_model
from tests.models import VOCABULARIES, small, small_transformer
from tools.bench.stock_checkpoints import write_opennmt_checkpoint


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        pytest.param(small_transformer(), "only recurrent models", id="a Transformer"),
        pytest.param(small(generator_alpha=1.5), "softmax model", id="entmax in the output"),
        pytest.param(small(global_attention_alpha=1.5), "softmax model", id="entmax in attention"),
    ],
)
def test_another_model_is_refused(config: ModelConfig, reason: str, tmp_path: Path) -> None:
    model, checkpoint = tmp_path / "model", tmp_path / "checkpoint.pt"
    save(model, build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    with pytest.raises(ValueError, match=reason):
        write_opennmt_checkpoint(load(model), checkpoint)
    assert not checkpoint.exists()
