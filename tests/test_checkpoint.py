"""Model folders: what was saved comes back, and what is damaged is named in one line."""

import json
import math
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import yaml

from onmt_entmax import checkpoint
from onmt_entmax.checkpoint import (
    CheckpointError,
    RunFolder,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    read_best,
    read_training_state,
    remember_best,
    save,
)
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from tests.models import BATCH, CONFIGS, SMALL, VOCABULARIES

FILES = ["config.yaml", "vocab.json", "model.safetensors", "training/state.pt", "SHA256SUMS"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    save(folder, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {"seed": 1}, {"step": 3})
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def refusal(work: Callable[[], object]) -> str:
    with pytest.raises(CheckpointError) as raised:
        work()
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    config = CONFIGS[name]
    model = build_model(config, VOCABULARIES).eval()
    options = {"data": {"c": {"path_src": "ä"}}}
    save(tmp_path / "m", model, config, VOCABULARIES, options)
    state = torch.get_rng_state()
    loaded = load(tmp_path / "m")
    assert torch.get_rng_state().equal(state)  # no weight was drawn, as all are read
    assert (loaded.config, loaded.vocabularies, loaded.options) == (config, VOCABULARIES, options)
    with torch.no_grad():
        expected, _ = model.hidden_states(BATCH)
        hidden, _ = loaded.model.hidden_states(BATCH)
    assert torch.equal(model.generator.scores(expected), loaded.model.generator.scores(hidden))
    modes = {path.stat().st_mode for path in (tmp_path / "m").iterdir()}
    assert len(modes) == 1  # safetensors' own file is for its owner alone
    assert "no training state" in refusal(lambda: read_training_state(tmp_path / "m"))


def test_of_a_checkpoint_deleted_meanwhile_the_best_of_now_is_read(tmp_path, monkeypatch) -> None:
    run, read = RunFolder(tmp_path, SMALL, VOCABULARIES, {}, keep=1), checkpoint.read_checked
    run.save(1, build_model(SMALL, VOCABULARIES), {})

    def deleted(folder: Path, name: str, at_most: int) -> bytes:
        if name == "model.safetensors" and folder.name == "step_1":
            run.save(2, build_model(SMALL, VOCABULARIES), {})
        return read(folder, name, at_most)

    monkeypatch.setattr(checkpoint, "read_checked", deleted)
    assert load(tmp_path).folder == tmp_path / "step_2"


def read_all(folder: Path) -> None:
    """Read every file of a folder, as resuming does."""
    load(folder)
    assert read_training_state(folder) == {"step": 3}


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_bit_is_noticed(folder: Path, name: str) -> None:
    path, generator = folder / name, random.Random(name)
    whole = path.read_bytes()
    for _ in range(20):
        bit = generator.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert str(folder) in refusal(lambda: read_all(folder))
    path.write_bytes(whole)
    read_all(folder)


@pytest.mark.parametrize("name", FILES[:4])
@pytest.mark.parametrize("damage", ["half", "garbage", "nothing", "missing"])
def test_damage_that_is_listed_is_one_line_that_names_the_file(
    folder: Path, name: str, damage: str
) -> None:
    path = folder / name
    whole = path.read_bytes()
    contents = {"half": whole[: len(whole) // 2], "garbage": b"\x00\xff\xfe", "nothing": b""}
    path.unlink()
    if damage in contents:
        path.write_bytes(contents[damage])
    write_list(folder)
    message = refusal(lambda: read_all(folder))
    assert name in message or (damage == "missing" and str(folder) in message)


def test_a_folder_without_a_list_loads_with_a_warning(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    change_config(folder, lambda content: content["model"].update(tag_head=None), listed=False)
    with pytest.warns(UserWarning, match="model: has no SHA256SUMS: its files are not checked"):
        assert load(folder).config == SMALL


def change_config(
    folder: Path, change: Callable[[dict[str, Any]], object], listed: bool = True
) -> None:
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))
    if listed:
        write_list(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format_version": "2.0"}, "format 2.0 is newer"),
        ({"format_version": None}, "no format_version"),
        ({"model": []}, "model: must be a mapping"),
        ({"options": None}, "options: must be a mapping"),
        ({"options": {"target_order": "up"}}, "target_order: "),
        ({"model": {"encoder_type": "tree"}}, "encoder_type: must be"),
        ({"model": {"rnn_size": 0.5}}, "rnn_size: must be"),
        ({"model": {"head": 8}}, "head: no such key; did you mean 'heads'?"),
    ],
)
def test_configurations_that_are_refused(folder: Path, change: dict, said: str) -> None:
    change_config(folder, lambda content: content.update(change))
    message = refusal(lambda: load(folder))
    assert message.startswith(f"{folder}/config.yaml: ")
    assert said in message


def test_a_pretrained_model_loads() -> None:
    """It was written before the list of checksums lost its own."""
    folder = Path(__file__).parents[1] / "data" / "models" / "inflection-86"
    assert load(folder).config.rnn_size == 512


def test_the_best_checkpoint_of_a_run(tmp_path: Path) -> None:
    for step in (1, 2, 12):
        (tmp_path / f"step_{step}").mkdir()
    assert find_model(tmp_path).name == "step_12"
    remember_best(tmp_path, 2, "loss", 0.25)
    assert find_model(tmp_path).name == "step_2"
    assert checkpoint_steps(tmp_path)[-1] == 12
    (tmp_path / "step_2").rmdir()
    with pytest.warns(UserWarning, match=r"best.json: names step_2, which is not .*, step_12$"):
        assert find_model(tmp_path).name == "step_12"
    for step in ("NaN", "true", '"2"', "null", "[2]", "9" * 5000, "[" * 10**5, "\0", "1}, {"):
        (tmp_path / "best.json").write_text(f'{{"step": {step}}}')
        assert best_step(tmp_path) is None
        assert "best.json: " in refusal(lambda: find_model(tmp_path))


def test_names_of_opennmts_checkpoints_lead_to_ours(tmp_path: Path) -> None:
    """It writes `model_step_5.pt`; an imported folder beside such a file stands for it."""
    (tmp_path / "model/step_5").mkdir(parents=True)
    message = refusal(lambda: find_model(tmp_path / "model_step_5.pt"))
    assert message.endswith(f"no such model folder; did you mean {tmp_path}/model/step_5?")
    assert "did you mean" not in refusal(lambda: find_model(tmp_path / "model_step_6.pt"))
    (tmp_path / "other.pt").touch()
    imported = tmp_path / "other"
    assert refusal(lambda: find_model(tmp_path / "other.pt")).endswith(f"/other.pt {imported}")
    imported.mkdir()
    (imported / "config.yaml").touch()
    assert find_model(tmp_path / "other.pt") == imported
    os.utime(tmp_path / "other.pt", (2**33, 2**33))  # newer than the folder
    assert refusal(lambda: find_model(tmp_path / "other.pt")).endswith("/other.pt.imported")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "no such model folder"),
        ("empty", "not a model folder (it has neither config.yaml nor step_N)"),
        ("data", "not a model folder (it has neither config.yaml nor step_N); did you mean"),
        ("model.pt", "a file, and models are folders; convert a checkpoint of OpenNMT-py: onmt-en"),
    ],
)
def test_paths_that_hold_no_model(tmp_path: Path, name: str, said: str) -> None:
    """Of data that `prepare` wrote, the model is in the folder `model`."""
    (tmp_path / "empty").mkdir()
    for run in ("a", "model"):
        (tmp_path / f"data/{run}/step_5").mkdir(parents=True)
    (tmp_path / "model.pt").touch()
    hint = f" {tmp_path}/data/model?" if name == "data" else ""
    message = refusal(lambda: find_model(tmp_path / name))
    assert message.startswith(f"{tmp_path / name}: {said}{hint}")


def test_weights_that_are_views_of_one_block_are_saved(tmp_path: Path) -> None:
    """On a GPU, cuDNN keeps the weights of an LSTM in one block of memory."""
    model = build_model(SMALL, VOCABULARIES)
    weights = list(model.encoder.rnn.parameters())
    block = torch.cat([weight.detach().flatten() for weight in weights])
    parts = block.split([weight.numel() for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.data = part.view_as(weight)
    save(tmp_path / "model", model, SMALL, VOCABULARIES, {})
    assert weights[1].untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
    loaded = load(tmp_path / "model").model.state_dict()
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded[name], weight), name


CHANGED_WEIGHTS: dict[str, Callable[[dict[str, torch.Tensor]], object]] = {
    "missing": lambda w: w.pop("generator.bias"),
    "unknown": lambda w: w.update(more=torch.ones(2)),
    "integers": lambda w: w.update({"generator.bias": w["generator.bias"].long()}),
    "another shape": lambda w: w.update({"generator.bias": torch.ones(3)}),
    "transposed": lambda w: w.update({"generator.bias": w["generator.bias"][None]}),
    "nan": lambda w: w["generator.bias"].fill_(torch.nan),
    "infinite": lambda w: w["generator.bias"][1:2].fill_(-torch.inf),
}


@pytest.mark.parametrize("name", CHANGED_WEIGHTS)
def test_weights_that_do_not_fit_are_one_line(folder: Path, name: str) -> None:
    path = folder / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    CHANGED_WEIGHTS[name](weights)
    path.write_bytes(safetensors.torch.save(weights))
    write_list(folder)
    message = refusal(lambda: load(folder))
    assert message.startswith(f"{path}: ")
    assert ("more" if name == "unknown" else "generator.bias") in message


@pytest.mark.parametrize("both", [False, True])
def test_shared_weights_have_either_name_or_both(tmp_path: Path, both: bool) -> None:
    config = replace(SMALL, share_decoder_embeddings=True, tgt_word_vec_size=SMALL.rnn_size)
    model = build_model(config, VOCABULARIES)
    save(tmp_path / "m", model, config, VOCABULARIES, {})
    path = tmp_path / "m" / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    table = "decoder.embeddings.make_embedding.emb_luts.0.weight"
    kept, other = (table, "generator.weight")[:: 1 if table in weights else -1]
    assert other not in weights
    weights[other] = weights[kept].clone() if both else weights.pop(kept)
    path.write_bytes(safetensors.torch.save(weights))
    write_list(tmp_path / "m")
    loaded = load(tmp_path / "m").model
    assert loaded.generator.weight.equal(model.generator.weight)
    assert loaded.generator.weight is loaded.decoder.embeddings.word_lut.weight


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "tokens",
    [None, "abc", [1], ["a", "a"], ["<unk>"]],
)
def test_vocabularies_that_are_refused(folder: Path, side: str, tokens: Any) -> None:
    content = json.loads((folder / "vocab.json").read_text())
    content[side] = tokens
    (folder / "vocab.json").write_text(json.dumps(content))
    write_list(folder)
    assert str(folder) in refusal(lambda: load(folder))


@pytest.mark.parametrize("value", [math.inf, math.nan, 0.5])
def test_a_best_loss_that_is_not_finite_can_be_read(tmp_path, value):
    """As where no validation has had a finite one yet."""
    remember_best(tmp_path, 3, "loss", value)
    best = read_best(tmp_path)
    assert (best["step"], best["metric"]) == (3, "loss")
    assert math.isfinite(best["value"]) == math.isfinite(value)
