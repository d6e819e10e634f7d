"""Why a model cannot train on padded batches, and hence with CUDA graphs."""

from dataclasses import replace

import pytest
import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.sparse import backends
from onmt_entmax.train import padding
from onmt_entmax.train.padding import why_not_padded
from tests.train.updates import RECURRENT, TRANSFORMER, model_of


def test_kernels_that_do_not_start_are_a_reason_against_padding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyTorch's operations in their place wait for the GPU, which cannot be recorded."""
    assert why_not_padded(model_of()) is None
    monkeypatch.setattr(padding, "device_of", lambda model: torch.device("cuda"))
    monkeypatch.setattr(backends, "backend_for", lambda *_: backends.reference)
    assert why_not_padded(model_of()) == "Triton starts no kernels here"


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(TRANSFORMER, id="Transformer"),
        pytest.param(replace(RECURRENT, dec_layers=2, enc_layers=2), id="two LSTM layers"),
    ],
)
def test_other_models_can_be_padded(config: ModelConfig) -> None:
    assert why_not_padded(model_of(config)) is None


NO_LSTM = "the encoder is not an LSTM"
NO_INPUT_FEEDING = "the decoder is not an input-feeding LSTM"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"rnn_type": "GRU"}, NO_LSTM, id="GRU"),
        pytest.param({"position_encoding": True}, NO_LSTM, id="positions are encoded"),
        pytest.param({"encoder_type": "mean"}, NO_LSTM, id="mean encoder"),
        pytest.param({"context_gate": "both"}, NO_INPUT_FEEDING, id="context gate"),
        pytest.param({"input_feed": False}, NO_INPUT_FEEDING, id="no input feeding"),
        pytest.param({"global_attention": "none"}, NO_INPUT_FEEDING, id="no attention"),
    ],
)
def test_the_part_that_cannot_be_padded_is_the_reason(
    changes: dict[str, object], reason: str
) -> None:
    config = replace(RECURRENT, **changes)
    assert str(why_not_padded(model_of(config))).startswith(reason)
