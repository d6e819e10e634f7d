"""Models that are saved and loaded: each comes back as it was, whatever happens meanwhile."""

from pathlib import Path

import pytest
import safetensors.torch
import torch

from onmt_entmax.checkpoint import LoadedModel, load, read_training_state, save, weights
from onmt_entmax.files import FileError
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import RunFolder
from tests.checkpoint.refusals import error_line
from tests.commands import ROOT
from tests.models import BATCH, BRNN, CONFIGS, VOCABULARIES

OPTIONS = {"data": {"c": {"path_src": "ä"}}}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    config = CONFIGS[name]
    model = build_model(config, VOCABULARIES).eval()
    save(tmp_path / "m", model, config, VOCABULARIES, OPTIONS)
    loaded = load(tmp_path / "m")
    assert (loaded.config, loaded.vocabularies, loaded.options) == (config, VOCABULARIES, OPTIONS)
    with torch.no_grad():
        expected, _ = model.hidden_states(BATCH)
        hidden, _ = loaded.model.hidden_states(BATCH)
    assert torch.equal(model.generator.scores(expected), loaded.model.generator.scores(hidden))


@pytest.mark.parametrize("name", CONFIGS)
def test_loading_draws_no_random_number(tmp_path: Path, name: str) -> None:
    """All weights are read, so none is initialised."""
    save(tmp_path / "m", build_model(CONFIGS[name], VOCABULARIES), CONFIGS[name], VOCABULARIES, {})
    state = torch.get_rng_state()
    load(tmp_path / "m")
    assert torch.get_rng_state().equal(state)


def test_all_files_have_the_same_permissions(saved: Path) -> None:
    """Safetensors would write a file that only its owner may read."""
    assert len({path.stat().st_mode for path in saved.iterdir() if path.is_file()}) == 1


def test_a_model_without_a_training_state_says_so(tmp_path: Path) -> None:
    save(tmp_path / "m", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {})
    assert "no training state" in error_line(lambda: read_training_state(tmp_path / "m"))


def test_a_write_error_without_a_message_is_named_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(safetensors.torch, "save_file", fail)
    with pytest.raises(FileError, match=r"cannot be written \(RuntimeError\)$"):
        save(tmp_path / "m", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {})


def test_if_a_checkpoint_is_deleted_while_it_is_read_the_new_best_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that keeps one checkpoint saves the next one, and deletes the first, meanwhile."""
    run = RunFolder(tmp_path, BRNN, VOCABULARIES, {}, keep=1)
    run.save(1, build_model(BRNN, VOCABULARIES), {})
    read_checked = weights.read_checked

    def read_too_late(folder: Path, name: str, at_most: int) -> bytes:
        if name == "model.safetensors" and folder.name == "step_1":
            run.save(2, build_model(BRNN, VOCABULARIES), {})
        return read_checked(folder, name, at_most)

    monkeypatch.setattr(weights, "read_checked", read_too_late)
    assert load(tmp_path).folder == tmp_path / "step_2"


def test_a_pretrained_model_of_an_earlier_version_loads() -> None:
    loaded = load(ROOT / "data" / "models" / "inflection-86")
    assert (loaded.package_version, loaded.config.rnn_size) == ("0.1.0", 512)


@pytest.mark.filterwarnings("ignore:.* has no SHA256SUMS")
def test_the_path_of_a_folder_may_be_a_string(reversing_model: LoadedModel) -> None:
    assert load(str(reversing_model.folder)).vocabularies == reversing_model.vocabularies
