"""Model folders: saved state comes back, and damaged files are named in one line."""

import json
import random
import subprocess
import sys
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
    best_step,
    find_model,
    load,
    read_training_state,
    remember_best,
    save,
)
from onmt_entmax.checksums import write_list
from onmt_entmax.files import FileError, write_folder
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import RunFolder, prune
from tests.commands import ENVIRONMENT
from tests.test_model import BATCH, CONFIGS, SMALL, VOCABULARIES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    path = tmp_path / "model"
    save(path, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {"seed": 1}, {"step": 3})
    return path


@pytest.mark.parametrize("name", ["brnn", "transformer", "sparse"])
def test_a_model_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    config = CONFIGS[name]
    model = build_model(config, VOCABULARIES).eval()
    save(tmp_path / "m", model, config, VOCABULARIES, {"data": {"c": {"path_src": "ä"}}})
    random = torch.get_rng_state()
    loaded = load(tmp_path / "m")
    assert torch.get_rng_state().equal(random)  # no weight was drawn, as all are read
    assert loaded.config == config
    assert loaded.vocabularies == VOCABULARIES
    assert loaded.options == {"data": {"c": {"path_src": "ä"}}}
    with torch.no_grad():
        expected, _ = model.hidden_states(BATCH)
        found, _ = loaded.model.hidden_states(BATCH)
    assert torch.equal(model.generator.scores(expected), loaded.model.generator.scores(found))


def test_training_state_comes_back(folder: Path) -> None:
    assert read_training_state(folder) == {"step": 3}


def test_a_released_model_has_no_training_state(tmp_path: Path) -> None:
    save(tmp_path / "m", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    assert not (tmp_path / "m" / "training").exists()
    with pytest.raises(CheckpointError, match="no training state"):
        read_training_state(tmp_path / "m")


def read_all(folder: Path) -> None:
    """Read every file of a folder, as resuming does."""
    load(folder)
    read_training_state(folder)


@pytest.mark.parametrize(
    "name", ["config.yaml", "vocab.json", "model.safetensors", "training/state.pt", "SHA256SUMS"]
)
def test_every_flipped_bit_is_noticed(folder: Path, name: str) -> None:
    path, generator = folder / name, random.Random(name)
    whole = path.read_bytes()
    read_all(folder)
    for _ in range(40):
        bit = generator.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError) as caught:
            read_all(folder)
        assert str(path) in str(caught.value)
        assert str(caught.value).count("\n") == 0
    path.write_bytes(whole)
    read_all(folder)


def test_a_list_that_was_deleted_is_noticed(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(CheckpointError, match=r"SHA256SUMS: is missing; restore it, or accept"):
        load(folder)


def test_a_folder_of_format_1_0_loads_with_a_note(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("format_version: '1.1'", "format_version: '1.0'"))
    with pytest.warns(UserWarning, match="format 1.0, which has no checksums") as notes:
        load(folder)
    assert len(notes) == 1


def test_sha256sum_reads_the_list(folder: Path) -> None:
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder).returncode == 0
    (folder / "vocab.json").write_text("{}")
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "vocab.json: FAILED" in done.stdout


def halve(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("name", ["config.yaml", "vocab.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["halve", "delete", "garbage"])
@pytest.mark.parametrize("accepted", [False, True])
def test_damage_is_one_line_that_names_the_file(
    folder: Path, name: str, damage: str, accepted: bool
) -> None:
    path = folder / name
    if damage == "halve":
        halve(path)
    elif damage == "delete":
        path.unlink()
    else:
        path.write_bytes(b"\x00\xff\xfe not this")
    if accepted:
        write_list(folder)
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert name in message or (name == "config.yaml" and damage == "delete")


def test_a_training_state_cut_in_half(folder: Path) -> None:
    halve(folder / "training" / "state.pt")
    with pytest.raises(CheckpointError, match=r"state.pt: its content is not what was written"):
        read_training_state(folder)
    write_list(folder)
    with pytest.raises(CheckpointError, match=r"state.pt: cut short or damaged"):
        read_training_state(folder)


def test_nothing_is_ever_unpickled(folder: Path) -> None:
    """A pickle that would run code is refused."""
    import pickle

    class Evil:
        def __reduce__(self):
            return (Path.touch, (folder / "ran",))

    (folder / "training" / "state.pt").write_bytes(pickle.dumps(Evil()))
    write_list(folder)
    with pytest.raises(CheckpointError):
        read_training_state(folder)
    torch.save(Evil(), folder / "training" / "state.pt")
    write_list(folder)
    with pytest.raises(CheckpointError):
        read_training_state(folder)
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("version", "message"),
    [("2.0", "format 2.0 is newer"), ("99.1", "newer"), (None, "no format_version")],
)
def test_newer_formats_are_refused(folder: Path, version: str | None, message: str) -> None:
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["format_version"] = version
    path.write_text(yaml.safe_dump(config))
    write_list(folder)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_the_folder_around_a_model_names_it(folder: Path) -> None:
    """As the folder of an experiment's cell, whose config.yaml configures its training."""
    (folder.parent / "model").mkdir(exist_ok=True)
    (folder.parent / "config.yaml").write_text("train_steps: 100\n")
    with pytest.raises(CheckpointError, match=r"no format_version .*; is it .*model that you mean"):
        load(folder.parent)


def test_a_newer_minor_format_is_read(folder: Path) -> None:
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["format_version"] = "1.7"
    del config["model"]["bridge"]  # a field that an older release lacks gets its default
    path.write_text(yaml.safe_dump(config))
    write_list(folder)
    assert load(folder).config == SMALL


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    tokens = json.loads((folder / "vocab.json").read_text())
    tokens["target"].append("more")
    (folder / "vocab.json").write_text(json.dumps(tokens))
    write_list(folder)
    with pytest.raises(CheckpointError, match=r"model.safetensors"):
        load(folder)


def test_a_failed_write_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "file").write_text("old")

    def fail(path: Path) -> None:
        path.mkdir()
        (path / "file").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="No space left"):
        write_folder(target, fail)
    assert (target / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("bytes_left", [100, 30_000, 400_000])
def test_a_full_disk_is_named_whatever_library_met_it(tmp_path: Path, bytes_left: int) -> None:
    """Room for the text files, for the weights too, and for half of the training state."""
    code = (
        "import resource, sys, torch\n"
        "from pathlib import Path\n"
        "from onmt_entmax.checkpoint import save\n"
        "from onmt_entmax.model import build_model\n"
        "from tests.test_model import SMALL, VOCABULARIES\n"
        "state = {'a': torch.zeros(200_000)}\n"
        "model = build_model(SMALL, VOCABULARIES)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "save(Path(sys.argv[1]), model, SMALL, VOCABULARIES, {}, state)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model"), str(bytes_left)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.stderr.splitlines()[-1].endswith("/model: cannot be written (File too large)")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["delete", "replace"])
@pytest.mark.parametrize("times", [3, 100])
def test_a_checkpoint_that_changes_while_it_is_read(
    tmp_path: Path, change: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each look at the weights, the run goes on."""
    model = build_model(SMALL, VOCABULARIES)
    run = RunFolder(tmp_path / "run", SMALL, VOCABULARIES, {}, keep=1)
    run.save(0, model, {})
    remember_best(run.path, 0, "loss", 0.1)
    steps = iter(range(1, times + 1))
    fill = checkpoint._fill

    def interrupted(*arguments: Any) -> None:
        step = next(steps, None)
        if step is not None:
            with torch.no_grad():
                model.generator.bias += 1
            run.save(step if change == "delete" else 0, model, {})
            remember_best(run.path, step if change == "delete" else 0, "loss", 0.1)
            prune(run.path, 1, step)
        fill(*arguments)

    monkeypatch.setattr(checkpoint, "_fill", interrupted)
    if times == 100:
        with pytest.raises(CheckpointError, match="run: changes while it is read; try again"):
            load(run.path)
        return
    loaded = load(run.path)
    assert loaded.folder == run.path / ("step_3" if change == "delete" else "step_0")
    assert loaded.model.generator.bias.equal(model.generator.bias)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"step": null}', "\0", '{"step": "x"}'])
def test_a_damaged_name_of_the_best_is_no_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "best.json").write_text(text)
    for step in (1, 2):
        (tmp_path / f"step_{step}").mkdir()
    assert best_step(tmp_path) is None
    assert find_model(tmp_path, newest=True).name == "step_2"
    with pytest.raises(CheckpointError, match=r"best.json: damaged; name a checkpoint instead"):
        find_model(tmp_path)


def test_every_flipped_bit_in_the_name_of_the_best_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    for step in (1, 2, 12):
        (tmp_path / f"step_{step}").mkdir()
    remember_best(tmp_path, 2, "loss", 0.25)
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 5):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError):
            find_model(tmp_path)
    path.write_text('{"step": 2, "metric": "loss", "value": 0.25}\n')  # of an older version
    assert find_model(tmp_path).name == "step_2"
    (tmp_path / "step_2").rmdir()  # its name stays: the newest is taken
    assert find_model(tmp_path).name == "step_12"


@pytest.mark.parametrize("change", ["encoder_type: tree", "rnn_size: x", "layers: {}"])
def test_a_network_that_cannot_be_built(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "model"
    save(folder, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    described = yaml.safe_load((folder / "config.yaml").read_text())
    described["model"] |= yaml.safe_load(change)
    (folder / "config.yaml").write_text(yaml.safe_dump(described))
    write_list(folder)
    with pytest.raises(CheckpointError, match=r"config.yaml: model: (encoder_|rnn_size|layers)"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "no such model folder"),
        ("empty", "not a model folder (it has neither config.yaml nor step_N)"),
        ("data", "not a model folder (it has neither config.yaml nor step_N); did you mean"),
        ("model.zip", "an archive, which only inflect and serve read; unpack it"),
        ("model.pt", "a file, and models are folders; `onmt-entmax import-onmt` converts"),
    ],
)
def test_paths_that_hold_no_model(tmp_path: Path, name: str, said: str) -> None:
    """Of data that `prepare` wrote, the model is in the folder `model`."""
    (tmp_path / "empty").mkdir()
    for run in ("a", "model"):
        (tmp_path / f"data/{run}/step_5").mkdir(parents=True)
    for file in ("model.zip", "model.pt"):
        (tmp_path / file).touch()
    with pytest.raises(CheckpointError) as raised:
        find_model(tmp_path / name)
    hint = f" {tmp_path}/data/model?" if name == "data" else ""
    assert str(raised.value).startswith(f"{tmp_path / name}: {said}{hint}")


def test_a_part_of_the_network_that_is_retired(folder: Path) -> None:
    path = folder / "config.yaml"
    described = yaml.safe_load(path.read_text())
    described["model"]["tag_head"] = None
    path.write_text(yaml.safe_dump(described))
    write_list(folder)
    assert load(folder).config == SMALL
    described["model"]["tag_head"] = "[abc]"
    path.write_text(yaml.safe_dump(described))
    write_list(folder)
    with pytest.raises(CheckpointError, match=r"config.yaml: tag_head: is retired") as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_weights_that_are_views_of_one_block_are_saved(tmp_path):
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
    with pytest.raises(CheckpointError, match=r"model\.safetensors: ") as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert ("more" if name == "unknown" else "generator.bias") in str(caught.value)


@pytest.mark.parametrize("names", ["either", "both", "different"])
def test_shared_weights_have_either_name_or_both(tmp_path: Path, names: str) -> None:
    config = replace(SMALL, share_decoder_embeddings=True, tgt_word_vec_size=SMALL.rnn_size)
    model = build_model(config, VOCABULARIES)
    save(tmp_path / "m", model, config, VOCABULARIES, {})
    path = tmp_path / "m" / "model.safetensors"
    weights = safetensors.torch.load(path.read_bytes())
    other = "decoder.embeddings.make_embedding.emb_luts.0.weight"
    kept, other = (
        ("generator.weight", other)
        if "generator.weight" in weights
        else (other, "generator.weight")
    )
    weights[other] = weights[kept].clone() if names != "either" else weights.pop(kept)
    if names == "different":
        weights[other] += 1
    path.write_bytes(safetensors.torch.save(weights))
    write_list(tmp_path / "m")
    if names == "different":
        with pytest.raises(CheckpointError, match="with which it is shared"):
            load(tmp_path / "m")
    else:
        assert load(tmp_path / "m").model.generator.weight.equal(model.generator.weight)
