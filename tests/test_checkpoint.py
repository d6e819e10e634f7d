"""Model folders: what was saved comes back, and what is damaged is named in one line."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import yaml

from onmt_entmax.checkpoint import (
    CheckpointError,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    read_best,
    read_training_state,
    save,
    weights,
)
from onmt_entmax.files import FileError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import RunFolder, remember_best
from tests.models import BATCH, CONFIGS, SMALL, VOCABULARIES

FILES = ["config.yaml", "vocab.json", "model.safetensors", "training/state.pt", "SHA256SUMS"]


State = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    save(folder, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {"seed": 1}, {"step": 3})
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def refusal(work: Callable[[], object]) -> str:
    """Return the one line with which work is refused."""
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
    loaded = load(tmp_path / "m")
    assert (loaded.config, loaded.vocabularies, loaded.options) == (config, VOCABULARIES, options)
    with torch.no_grad():
        expected, _ = model.hidden_states(BATCH)
        hidden, _ = loaded.model.hidden_states(BATCH)
    assert torch.equal(model.generator.scores(expected), loaded.model.generator.scores(hidden))


@pytest.mark.parametrize("name", CONFIGS)
def test_loading_draws_no_random_number(tmp_path: Path, name: str) -> None:
    """All weights are read."""
    save(tmp_path / "m", build_model(CONFIGS[name], VOCABULARIES), CONFIGS[name], VOCABULARIES, {})
    state = torch.get_rng_state()
    load(tmp_path / "m")
    assert torch.get_rng_state().equal(state)


def test_all_files_have_the_same_permissions(saved: Path) -> None:
    """Safetensors' own file is for its owner alone."""
    assert len({path.stat().st_mode for path in saved.iterdir() if path.is_file()}) == 1


def test_a_model_without_a_training_state_says_so(tmp_path: Path) -> None:
    save(tmp_path / "m", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    assert "no training state" in refusal(lambda: read_training_state(tmp_path / "m"))


def test_if_a_checkpoint_is_deleted_while_it_is_read_the_best_of_now_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, read = RunFolder(tmp_path, SMALL, VOCABULARIES, {}, keep=1), weights.read_checked
    run.save(1, build_model(SMALL, VOCABULARIES), {})

    def read_too_late(folder: Path, name: str, at_most: int) -> bytes:
        if name == "model.safetensors" and folder.name == "step_1":
            run.save(2, build_model(SMALL, VOCABULARIES), {})
        return read(folder, name, at_most)

    monkeypatch.setattr(weights, "read_checked", read_too_late)
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
    assert (str(folder) if damage == "missing" else name) in message


def test_a_folder_without_a_list_loads_with_a_warning(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    change_config(folder, lambda content: content["model"].update(tag_head=None), listed=False)
    with pytest.warns(UserWarning, match="model: has no SHA256SUMS: its files are not checked"):
        assert load(folder).config == SMALL


def change_config(
    folder: Path, change: Callable[[dict[str, Any]], object], listed: bool = True
) -> None:
    """Change the content of config.yaml; write its checksum again, if there is a list."""
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))
    if listed:
        write_list(folder)


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_configurations_that_are_refused(folder: Path, change: dict, message: str) -> None:
    change_config(folder, lambda content: content.update(change))
    line = refusal(lambda: load(folder))
    assert line.startswith(f"{folder}/config.yaml: ")
    assert message in line


def test_a_pretrained_model_loads() -> None:
    """It was written before the list of checksums lost its own."""
    folder = Path(__file__).parents[1] / "data" / "models" / "inflection-86"
    assert load(folder).config.rnn_size == 512


class TestTheBestCheckpointOfARun:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        """A run folder with checkpoints, and no file that names the best."""
        for step in (1, 2, 12):
            (tmp_path / f"step_{step}").mkdir()
        return tmp_path

    def test_is_the_newest_if_none_is_named(self, run: Path) -> None:
        assert find_model(run).name == "step_12"

    def test_is_the_one_that_is_named(self, run: Path) -> None:
        remember_best(run, 2, "loss", 0.25)
        assert find_model(run).name == "step_2"
        assert checkpoint_steps(run)[-1] == 12

    def test_is_the_newest_if_the_one_that_is_named_is_missing(self, run: Path) -> None:
        remember_best(run, 2, "loss", 0.25)
        (run / "step_2").rmdir()
        with pytest.warns(UserWarning, match=r"best.json: names step_2, which is not .*, step_12$"):
            assert find_model(run).name == "step_12"

    def test_is_none_whose_number_begins_with_zeros(self, run: Path) -> None:
        """No run writes one, and `step_012` and `step_12` would be the same step."""
        (run / "step_0099").mkdir()
        assert checkpoint_steps(run) == [1, 2, 12]

    @pytest.mark.parametrize(
        "step",
        ["NaN", "true", '"2"', "null", "[2]", "9" * 5000, "[" * 10**5, "\0", "1}, {"],
        ids=lambda step: repr(step[:5]),
    )
    def test_is_not_read_from_a_damaged_file(self, run: Path, step: str) -> None:
        (run / "best.json").write_text(f'{{"step": {step}}}')
        assert best_step(run) is None
        assert "best.json: " in refusal(lambda: find_model(run))

    @pytest.mark.parametrize(("value", "is_finite"), [(inf, False), (nan, False), (0.5, True)])
    def test_may_have_a_value_that_is_not_finite(
        self, run: Path, value: float, is_finite: bool
    ) -> None:
        """As where no validation has had a finite one yet."""
        remember_best(run, 3, "loss", value)
        best = read_best(run)
        assert (best["step"], best["metric"]) == (3, "loss")
        assert isfinite(best["value"]) is is_finite


def test_the_working_directory_may_be_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path `.` has no name from which an ending could be removed."""
    monkeypatch.chdir(tmp_path)
    assert ".: not a model folder" in refusal(lambda: find_model(Path()))


class TestNamesOfOpenNMTsCheckpoints:
    """It writes `model_step_5.pt`; an imported folder beside such a file stands for it."""

    def test_lead_to_our_checkpoint_of_the_step(self, tmp_path: Path) -> None:
        (tmp_path / "model/step_5").mkdir(parents=True)
        message = refusal(lambda: find_model(tmp_path / "model_step_5.pt"))
        assert message.endswith(f"no such model folder; did you mean {tmp_path}/model/step_5?")

    def test_of_another_step_lead_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "model/step_5").mkdir(parents=True)
        message = refusal(lambda: find_model(tmp_path / "model_step_6.pt"))
        assert "did you mean" not in message

    def test_lead_to_the_command_that_imports_them(self, tmp_path: Path) -> None:
        (tmp_path / "other.pt").touch()
        message = refusal(lambda: find_model(tmp_path / "other.pt"))
        assert message.endswith(f"/other.pt {tmp_path}/other")

    @pytest.fixture
    def imported(self, tmp_path: Path) -> Path:
        """The folder of an imported file, beside the file."""
        (tmp_path / "other.pt").touch()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "config.yaml").touch()
        return tmp_path / "other"

    def test_stand_for_their_imported_folder(self, imported: Path, tmp_path: Path) -> None:
        assert find_model(tmp_path / "other.pt") == imported

    def test_are_imported_again_if_they_are_newer(self, imported: Path, tmp_path: Path) -> None:
        os.utime(tmp_path / "other.pt", (2**33, 2**33))
        message = refusal(lambda: find_model(tmp_path / "other.pt"))
        assert message.endswith("/other.pt.imported")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such model folder"),
        ("empty", "not a model folder (it has neither config.yaml nor step_N)"),
        ("model.pt", "a file, and models are folders; convert a checkpoint of OpenNMT-py: onmt-en"),
    ],
)
def test_paths_that_hold_no_model(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.pt").touch()
    line = refusal(lambda: find_model(tmp_path / name))
    assert line.startswith(f"{tmp_path / name}: {message}")


def test_a_folder_of_prepare_leads_to_its_model(tmp_path: Path) -> None:
    for run in ("a", "model"):
        (tmp_path / f"data/{run}/step_5").mkdir(parents=True)
    line = refusal(lambda: find_model(tmp_path / "data"))
    message = "not a model folder (it has neither config.yaml nor step_N); did you mean"
    assert line.startswith(f"{tmp_path}/data: {message} {tmp_path}/data/model?")


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


BIAS = "generator.bias"


def change_bias(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[State], object]:
    return lambda weights: weights.update({BIAS: change(weights[BIAS])})


CHANGED_WEIGHTS: dict[str, Callable[[State], object]] = {
    "missing": lambda weights: weights.pop(BIAS),
    "integers": change_bias(torch.Tensor.long),
    "another shape": change_bias(lambda _: torch.ones(3)),
    "transposed": change_bias(lambda bias: bias.unsqueeze(0)),
    "nan": change_bias(lambda bias: torch.full_like(bias, torch.nan)),
    "infinite": change_bias(lambda bias: bias.index_fill(0, torch.tensor([1]), -torch.inf)),
}


def refusal_of_weights(folder: Path, change: Callable[[State], object]) -> str:
    """Return the error for a folder with changed weights, whose checksums are right."""
    path = folder / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    change(weights)
    path.write_bytes(safetensors.torch.save(weights))
    write_list(folder)
    message = refusal(lambda: load(folder))
    assert message.startswith(f"{path}: ")
    return message


@pytest.mark.parametrize("change", CHANGED_WEIGHTS.values(), ids=list(CHANGED_WEIGHTS))
def test_weights_that_do_not_fit_are_named(folder: Path, change: Callable[[State], object]) -> None:
    assert BIAS in refusal_of_weights(folder, change)


def test_weights_that_the_network_lacks_are_named(folder: Path) -> None:
    message = refusal_of_weights(folder, lambda weights: weights.update(more=torch.ones(2)))
    assert "more" in message


TABLE = "decoder.embeddings.make_embedding.emb_luts.0.weight"


@pytest.mark.parametrize("names", [(TABLE,), ("generator.weight",), (TABLE, "generator.weight")])
def test_shared_weights_have_either_name_or_both(tmp_path: Path, names: tuple[str, ...]) -> None:
    config = replace(SMALL, share_decoder_embeddings=True, tgt_word_vec_size=SMALL.rnn_size)
    model = build_model(config, VOCABULARIES)
    save(tmp_path / "m", model, config, VOCABULARIES, {})
    path = tmp_path / "m" / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    shared = weights.pop(TABLE, None)
    if shared is None:
        shared = weights.pop("generator.weight")
    path.write_bytes(safetensors.torch.save(weights | {name: shared.clone() for name in names}))
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


def test_an_error_without_a_message_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(FileError, match=r"cannot be written \(RuntimeError\)$"):
        save(tmp_path / "m", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
