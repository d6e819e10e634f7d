"""Training a Transformer with learned alphas: learning rates, records, resuming, refusals."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from onmt_entmax.checkpoint import CheckpointError, load
from onmt_entmax.cli.train import main as train
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.transformer import KINDS, alpha_parameters, learned_alphas
from tests.train.test_trainer import (
    after_each_update,
    assert_equal,
    resumed,
    trainer_of,
    weights,
)

LEARNED = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "position_encoding": True,
    "rnn_size": 16,
    "word_vec_size": 16,
    "heads": 2,
    "transformer_ff": 32,
    "global_attention_function": "softmax",
    "encoder_attention_function": "learned",
    "decoder_attention_function": "learned",
    "context_attention_function": "learned_shared",
}


def a_of(model: SparseNMTModel) -> torch.Tensor:
    return torch.cat([a.detach().clone() for a in alpha_parameters(model)])


@pytest.mark.parametrize("optim", ["adam", "sgd", "adagrad", "adafactor"])
@pytest.mark.parametrize("rate", [None, 0.1])
def test_alphas_may_have_a_learning_rate_of_their_own(
    tmp_path: Path, optim: str, rate: float | None
) -> None:
    changes = {"optim": optim, "alpha_learning_rate": rate, "decay_method": "rsqrt"}
    trainer = trainer_of(tmp_path, train_steps=3, warmup_steps=2, **{**LEARNED, **changes})
    groups = trainer.optimizer.param_groups
    assert [len(group["params"]) for group in groups] == [len(trainer.parameters) - 3, 3]
    rates = []
    after_each_update(trainer, lambda: rates.append([group["lr"] for group in groups]))
    before = a_of(trainer.model)
    trainer.train()
    assert optim != "adam" or (a_of(trainer.model) != before).all()
    factors = [max(step, 2) ** -0.5 for step in (1, 2, 3)]
    assert rates == [pytest.approx([0.005 * f, (rate or 0.005) * f]) for f in factors]
    if optim == "adam":
        assert all(group["fused"] and not group["weight_decay"] for group in groups)


def test_frozen_alphas_leave_the_learning_rate_to_the_others(tmp_path: Path) -> None:
    frozen = {"freeze_encoder": True, "freeze_decoder": True, "alpha_learning_rate": 9.0}
    trainer = trainer_of(tmp_path, train_steps=1, **LEARNED, **frozen)
    before = a_of(trainer.model)
    trainer.train()
    (group,) = trainer.optimizer.param_groups
    assert group["lr"] == 0.005
    assert a_of(trainer.model).equal(before)


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path) -> None:
    changes = {**LEARNED, "alpha_learning_rate": 0.05, "average_decay": 0.05}
    whole = trainer_of(tmp_path, train_steps=12, save_checkpoint_steps=5, **changes)
    whole.train()
    for step in (5, 10):
        again = resumed(tmp_path, step, train_steps=12, **changes)
        again.train()
        assert_equal(weights(again.model), weights(whole.model))
    other = resumed(tmp_path, 5, train_steps=12, **{**changes, "alpha_learning_rate": 0.0001})
    other.train()
    assert (a_of(other.model) != a_of(whole.model)).all()


def test_alphas_are_recorded_and_saved(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    trainer_of(tmp_path, **LEARNED, tensorboard=True, train_steps=20, save_checkpoint_steps=10)
    assert train(["-config", str(path)]) == 0
    run = tmp_path / "run"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = [row for row in rows if row["kind"] == "alpha"]
    assert [row["step"] for row in found] == [0, 10, 20]
    assert {*found[0]} == {"kind", "step", *KINDS}
    assert found[0] != {**found[1], "step": 0}
    for row in found[1:]:
        model = load(run / f"step_{row['step']}").model
        assert learned_alphas(model) == {kind: row[kind] for kind in KINDS}
    saved = load_file(run / "step_20" / "model.safetensors")
    a = saved["encoder.transformer.0.self_attn.a"]
    assert (1 + a.sigmoid()).tolist() == pytest.approx(found[-1]["encoder"][0], abs=1e-6)
    assert [row for row in rows if row["kind"] == "train"]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    scalars = events.Scalars("alpha/decoder/layer_1/head_2")
    assert [(e.step, pytest.approx(e.value, abs=1e-5)) for e in scalars] == [
        (row["step"], row["decoder"][0][1]) for row in found
    ]


def test_numbers_rise_in_a_warm_up_and_learned_alphas_do_not(tmp_path: Path) -> None:
    changes = {"encoder_attention_function": "sparsemax", "attention_warmup_steps": 4}
    trainer = trainer_of(tmp_path, train_steps=5, **{**LEARNED, **changes})
    module = trainer.model.encoder.transformer[0].self_attn
    seen = []
    after_each_update(trainer, lambda: seen.append(module.alpha))
    trainer.train()
    assert seen == pytest.approx([1, 1.25, 1.5, 1.75, 2])
    assert trainer.model.decoder.transformer_layers[0].self_attn.alpha is None


def test_a_checkpoint_of_another_attention_is_refused(tmp_path: Path) -> None:
    trainer_of(tmp_path, **LEARNED, train_steps=1).train()
    go_on = ["-config", str(tmp_path / "toy.yaml"), "-train_from", str(tmp_path / "run")]
    for function, wanted in (("softmax", "1.0"), ("learned_shared", "'learned_shared'")):
        match = f"made with encoder_attention_alpha 'learned', the configuration now says {wanted}"
        with pytest.raises(CheckpointError, match=match):
            train([*go_on, "-encoder_attention_function", function])
    more = ["-alpha_init_std", "5", "-alpha_learning_rate", "0.1", "-train_steps", "2"]
    assert train([*go_on, *more]) == 0
