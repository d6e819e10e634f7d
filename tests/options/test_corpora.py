"""The corpora under `data` of a file of training: their paths, their other keys, transforms."""

import os
from pathlib import Path

import pytest
import yaml

from onmt_entmax.errors import UserError
from tests.options.trainings import Changes, parameter_id, toy_setup
from tests.toy import write_config, write_corpus


def refusal_of_corpus(folder: Path, **entry: object) -> str:
    """Return the message that refuses an entry under `data`, of the name `c`."""
    with pytest.raises(UserError) as caught:
        toy_setup(folder, data={"c": entry})
    return str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(
            {"path_src": None},
            "toy.yaml: data: corpus 'c': path_src: is required",
            id="no value",
        ),
        pytest.param({"path_tgt": "a"}, "corpus 'c': path_src: is required", id="no source"),
        pytest.param(
            {"path_src": False},
            "corpus 'c': path_src: must be text, not False; put it between",
            id="no text",
        ),
        pytest.param(
            {"path_src": "nowhere"},
            "corpus 'c': path_src: no such file: nowhere (searched in ",
            id="no file",
        ),
    ],
)
def test_paths_of_a_corpus_are_checked(tmp_path: Path, entry: Changes, message: str) -> None:
    assert message in refusal_of_corpus(tmp_path, **entry)


def test_a_pipe_is_no_corpus(tmp_path: Path) -> None:
    """Its lines are counted before they are read, and a pipe gives them only once."""
    os.mkfifo(tmp_path / "pipe")
    message = refusal_of_corpus(tmp_path, path_src=str(tmp_path / "pipe"))
    assert f"path_src: {tmp_path}/pipe is a pipe or a device" in message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"path_scr": "a"}, "corpus 'c': path_scr: no such key; did you mean 'path_src'?"),
        ({"src_feats": {}}, "corpus 'c': src_feats: source features are not supported; write"),
        ({"save_model": "a"}, "save_model: is an option of the whole file; write it at the start"),
        ({"weight": 0}, "corpus 'c': weight: must be a whole number from 1"),
        ({"transforms": ["bpee"]}, "corpus 'c': transforms: must be one of switchout,"),
        ({"transforms": ["bpee"]}, "not 'bpee'; did you mean 'bpe'?"),
        ({"transforms": ["prefix"]}, "corpus 'c': the transform prefix needs src_prefix"),
        ({"src_prefix": "a"}, "src_prefix: is only read with the transform prefix"),
    ],
    ids=parameter_id,
)
def test_other_keys_of_a_corpus_are_checked(tmp_path: Path, more: Changes, message: str) -> None:
    paths = write_corpus(tmp_path, "corpus", size=3, seed=1)
    assert message in refusal_of_corpus(tmp_path, **paths, **more)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            {False: {}},
            "toy.yaml: data: False: must be text; put it between quotes",
            id="the name no without quotes",
        ),
        pytest.param(
            {"valid": {}}, "data: needs a corpus besides valid", id="a development set alone"
        ),
        pytest.param({}, "data: this option is required", id="nothing"),
        pytest.param(
            "files", "data: must be a mapping, not 'files'; name corpora under data", id="a text"
        ),
        pytest.param(
            {"c": []},
            "data: corpus 'c': must be a mapping with path_src and path_tgt",
            id="a list",
        ),
    ],
)
def test_data_without_corpora_is_refused(tmp_path: Path, data: object, message: str) -> None:
    with pytest.raises(UserError) as caught:
        toy_setup(tmp_path, data=data)
    assert message in str(caught.value)


def test_transforms_of_a_corpus_win_over_those_of_all(tmp_path: Path) -> None:
    data = yaml.safe_load(write_config(tmp_path).read_text())["data"]
    data["own"] = data["corpus_1"] | {"transforms": []}
    data["other"] = data["corpus_1"] | {"transforms": "bart"}
    corpora = toy_setup(tmp_path, data=data, transforms=["filtertoolong"]).data.corpora
    expected = {"corpus_1": ("filtertoolong",), "own": (), "other": ("bart",)}
    assert {corpus.name: corpus.transforms for corpus in corpora} == expected


def test_alignments_of_a_corpus_are_a_note(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, "corpus", size=3, seed=1)
    notes = toy_setup(tmp_path, data={"c": {**paths, "path_align": "a"}}).notes
    assert notes == ("without effect here: path_align of c",)
