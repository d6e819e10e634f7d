"""Options that exclude each other: a flag wins over its rival in the file."""

import os
from pathlib import Path

import pytest
import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import OptionError, no_such_file
from onmt_entmax.options.rivals import without_rivals
from onmt_entmax.options.train import TrainingSetup, training_setup
from tests.matrices import read, write_matrix
from tests.toy import write_config

EPOCHS = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}


def setup(folder: Path, *flags: object, **file: object) -> TrainingSetup:
    return training_setup(["-config", str(write_config(folder, **file)), *map(str, flags)])


def test_steps_replace_epochs_and_epochs_steps(tmp_path):
    chosen = setup(tmp_path, "-train_steps", 9, "-valid_steps", 3, **EPOCHS)
    training = chosen.training
    assert (training.train_steps, training.train_epochs) == (9, None)
    assert (training.valid_steps, training.valid_epochs) == (3, None)
    assert chosen.record["valid_epochs"] is None
    training = setup(tmp_path, "-train_epochs", 4, "-valid_epochs", 2).training
    assert (training.train_steps, training.train_epochs, training.valid_epochs) == (None, 4, 2)


def test_rivals_in_one_place_are_refused(tmp_path):
    message = "valid_epochs: give valid_steps or valid_epochs, not both"
    with pytest.raises(OptionError, match=f"toy.yaml: {message}"):
        setup(tmp_path, valid_epochs=1)
    with pytest.raises(OptionError, match=f"command line: {message}"):
        setup(tmp_path, "-valid_steps", 1, "-valid_epochs", 1)


def test_a_schedule_that_loses_its_end_is_one_line(tmp_path):
    with pytest.raises(OptionError, match="cosine ends at train_steps: set them"):
        setup(tmp_path, "-train_epochs", 2, decay_method="cosine", warmup_steps=2)


def test_a_function_replaces_the_alpha_of_another(tmp_path):
    file = {"generator_function": "entmax", "generator_alpha": 1.3}
    assert setup(tmp_path, "-generator_function", "softmax", **file).model.generator_alpha == 1
    assert setup(tmp_path, "-generator_function", "entmax", **file).model.generator_alpha == 1.3
    with pytest.raises(OptionError, match="is only read with generator_function: entmax"):
        setup(tmp_path, **{**file, "generator_function": "softmax"})
    file = {"encoder_attention_function": "entmax", "encoder_attention_alpha": 1.3, "seed": 1}
    assert "encoder_attention_alpha" not in without_rivals(
        file, {"encoder_attention_function": "sparsemax"}
    )


def test_a_side_replaces_that_side_of_both(tmp_path):
    transformer = {"encoder_type": "transformer", "decoder_type": "transformer", "layers": 3}
    for name in ("global_attention_function", "share_decoder_embeddings"):
        transformer[name] = None
    flags = ("-enc_layers", 1, "-heads", 4)
    model = setup(tmp_path, *flags, **transformer, word_vec_size=32).model
    assert (model.enc_layers, model.dec_layers) == (1, 3)
    model = setup(tmp_path, "-tgt_word_vec_size", 8).model
    assert (model.src_word_vec_size, model.tgt_word_vec_size) == (16, 8)
    assert setup(tmp_path, "-layers", 2, layers=None, enc_layers=3).model.enc_layers == 2
    assert without_rivals({"layers": -1, "dec_layers": 2}, {"enc_layers": 1}) == {"dec_layers": 2}


def test_vectors_of_a_side_replace_those_of_both():
    assert without_rivals({"both_embeddings": "a"}, {"src_embeddings": "b"}) == {}
    assert without_rivals({"src_embeddings": "a", "seed": 1}, {"both_embeddings": "b"}) == {
        "seed": 1
    }


def test_a_batch_size_never_changes_its_meaning(tmp_path):
    file = {"batch_type": "tokens", "batch_size": 4096}
    message = "command line: batch_type: sents: batch_size 4096 counts tokens; give batch_size too"
    with pytest.raises(OptionError, match=message):
        setup(tmp_path, "-batch_type", "sents", **file)
    assert setup(tmp_path, "-batch_type", "tokens", **file).data.batch_size == 4096
    chosen = setup(tmp_path, "-batch_type", "sents", "-batch_size", 8, **file)
    assert chosen.data.batch_size == 8


def test_a_cell_replaces_what_its_base_has(tmp_path):
    cells = {
        "epochs": {"valid_epochs": 1},
        "tokens": {"batch_type": "tokens", "batch_size": 500},
    }
    first, second = read(write_matrix(tmp_path, cells=cells)).cells
    assert "valid_steps" not in first.training
    assert second.training["valid_steps"] == 2
    cells["tokens"].pop("batch_size")
    with pytest.raises(UserError, match="cells: tokens: batch_type: tokens: batch_size 16 counts"):
        read(write_matrix(tmp_path, cells=cells))


class TestPaths:
    """Paths are relative to the current folder; a file elsewhere is named."""

    def test_the_folder_that_was_searched_and_the_one_that_was_meant(self, tmp_path, monkeypatch):
        (tmp_path / "config" / "mine").mkdir(parents=True)
        (tmp_path / "elsewhere").mkdir()
        path = tmp_path / "config" / "mine" / "toy.yaml"
        content = yaml.safe_load(write_config(tmp_path).read_text())
        content["data"]["corpus_1"]["path_src"] = "train.src"
        path.write_text(yaml.safe_dump(content))
        monkeypatch.chdir(tmp_path)
        training_setup(["-config", "config/mine/toy.yaml"])
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pytest.raises(OptionError) as caught:
            training_setup(["-config", "../config/mine/toy.yaml"])
        assert str(caught.value) == (
            f"../config/mine/toy.yaml: data: corpus 'corpus_1': path_src: no such file: train.src "
            f"(searched in {tmp_path}/elsewhere); did you mean to run from {tmp_path}?"
        )
        (tmp_path / "train.src").unlink()
        with pytest.raises(OptionError, match=r"train.src \(searched in .*/elsewhere\)$"):
            training_setup(["-config", "../config/mine/toy.yaml"])

    def test_what_is_there_but_no_file_is_told_from_what_is_not(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        assert no_such_file(tmp_path / "pipe") == (
            f"{tmp_path}/pipe is a pipe or a device, but is read more than once; name a file"
        )
        assert no_such_file(tmp_path) == f"{tmp_path} is a folder; name a file"

    def test_the_base_of_a_matrix_is_beside_it_or_in_the_current_folder(
        self, tmp_path, monkeypatch
    ):
        path = write_matrix(tmp_path, base="toy.yaml")
        (tmp_path / "config").mkdir()
        moved = path.rename(tmp_path / "config" / path.name)
        monkeypatch.chdir(tmp_path)
        assert read(moved.relative_to(tmp_path)).cells[0].training["rnn_size"] == 8
        (tmp_path / "config" / "toy.yaml").write_text("rnn_size: 9\n")
        assert read(moved).cells[0].training["rnn_size"] == 9
        monkeypatch.chdir("/")
        (tmp_path / "config" / "toy.yaml").unlink()
        message = (
            rf"matrix.yaml: base: no such file: toy.yaml \(searched in {tmp_path}/config and /\)"
        )
        with pytest.raises(UserError, match=message):
            read(moved)
