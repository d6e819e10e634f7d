"""Saved models of Hugging Face `transformers` with entmax: which attention a loaded one has.

Transformers saves no attention, and takes softmax by itself. A model with entmax that has run
writes the name of its attention into its configuration.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.huggingface_models import MakeModel, batch, bert, gpt, llama, register_and_build


@torch.no_grad()
def logits_of(model: Any) -> Tensor:
    tokens, mask = batch()
    return model.eval()(input_ids=tokens, attention_mask=mask).logits


@pytest.mark.parametrize("make", [bert, gpt, llama])
class TestAModelThatHasRun:
    @pytest.fixture
    def model(self, make: MakeModel, tmp_path: Path) -> Any:
        """A model with entmax that has run, and is saved."""
        model = register_and_build(make, 1.5)
        logits_of(model)
        model.save_pretrained(tmp_path)
        return model

    def test_is_loaded_with_entmax(self, model: Any, tmp_path: Path) -> None:
        loaded = type(model).from_pretrained(tmp_path)
        assert torch.equal(logits_of(loaded), logits_of(model))
        assert loaded.config._attn_implementation == "entmax"

    def test_is_loaded_with_softmax_by_name(self, model: Any, tmp_path: Path) -> None:
        softmax = type(model).from_pretrained(tmp_path, attn_implementation="sdpa")
        assert not torch.allclose(logits_of(softmax), logits_of(model))

    def test_is_saved_without_entmax_after_softmax(self, model: Any, tmp_path: Path) -> None:
        softmax = type(model).from_pretrained(tmp_path, attn_implementation="sdpa")
        softmax.save_pretrained(tmp_path)
        assert "attn_implementation" not in json.loads((tmp_path / "config.json").read_text())


def test_a_name_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    model = register_and_build(gpt, 1.5)
    model(input_ids=batch()[0])
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert config["attn_implementation"] == "entmax"
    path.write_text(json.dumps(config | {"attn_implementation": "entmax of another program"}))
    with pytest.raises(ValueError, match="entmax of another program"):
        type(model).from_pretrained(tmp_path)


def test_a_model_that_has_not_run_is_loaded_with_entmax_by_name(tmp_path: Path) -> None:
    model = register_and_build(gpt, 1.5).eval()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, attn_implementation="entmax")
    assert torch.equal(logits_of(loaded), logits_of(model))
