"""`onmt-entmax export`: a clean folder that translates alike, and names nothing of this machine."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    find_model,
    load,
    read_training_state,
    save,
    with_subword_files,
)
from onmt_entmax.cli.export import main
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import differences, write_list
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import remember_best
from tests.commands import succeed
from tests.in_process import exit_status, refusal
from tests.models import SMALL, VOCABULARIES


def export(*arguments: object) -> None:
    assert exit_status(main, [str(argument) for argument in arguments]) == 0


def texts(folder: Path) -> bytes:
    """Return the content of all files of a folder, but for the weights."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".safetensors"]
    return b"\n".join(path.read_bytes() for path in files)


class Exported(NamedTuple):
    """The exported folder of the trained run."""

    run: Path
    folder: Path
    dtype: str


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16"])
def exported(
    request: pytest.FixtureRequest, trained: Path, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp("export") / "exported"
    export(trained / "run", folder, "--dtype", request.param)
    return Exported(trained / "run", folder, request.param)


def test_an_exported_model_translates_alike(
    exported: Exported, trained: Path, tmp_path: Path
) -> None:
    outputs = []
    for model in (exported.run, exported.folder):
        output = tmp_path / f"{model.name}.txt"
        files = ["-src", trained / "valid.src", "-output", output]
        succeed("translate.py", "-model", model, *files, "-beam_size", 5)
        outputs.append(output.read_text())
    assert outputs[0] == outputs[1]


def test_exported_weights_are_those_of_the_run_rounded(exported: Exported) -> None:
    weights = load(exported.folder).model.state_dict()
    for name, weight in load(exported.run).model.state_dict().items():
        assert weights[name].equal(weight.to(getattr(torch, exported.dtype)).float())


def test_rounded_weights_take_less_space(exported: Exported) -> None:
    size = (exported.folder / "model.safetensors").stat().st_size
    whole = (find_model(exported.run) / "model.safetensors").stat().st_size
    if exported.dtype == "float32":
        assert size == whole
    else:
        assert size < 0.6 * whole


def test_an_exported_folder_has_what_others_need_and_nothing_else(exported: Exported) -> None:
    names = sorted(path.name for path in exported.folder.iterdir())
    assert names == ["README.md", "SHA256SUMS", "config.yaml", "model.safetensors", "vocab.json"]
    assert differences(exported.folder) == []


def test_an_exported_folder_names_no_path_of_this_machine(
    exported: Exported, trained: Path
) -> None:
    assert str(trained).encode() not in texts(exported.folder)


def test_the_card_has_the_updates_of_the_best_checkpoint(exported: Exported) -> None:
    best = find_model(exported.run).name.removeprefix("step_")
    assert f"| updates | {best} |" in (exported.folder / "README.md").read_text()


# --- subword models ---


class Subwords(NamedTuple):
    """An exported run, and the private files of its subword models."""

    exported: Path
    source: Path
    target: Path


@pytest.fixture(params=["both.codes", "target.codes"], ids=["shared", "separate"])
def subwords(request: pytest.FixtureRequest, tmp_path: Path) -> Subwords:
    private = tmp_path / "home" / "somebody"
    private.mkdir(parents=True)
    source, target = private / "both.codes", private / request.param
    for path in (source, target):
        path.write_text(f"merges of {path.stem}")
    corpus = {"path_src": str(private / "x"), "path_tgt": "y", "transforms": ["bpe"]}
    options = {
        "src_subword_model": str(source),
        "tgt_subword_model": str(target),
        "transforms": ["filtertoolong"],
        "data": {"corpus": corpus},
        "save_model": str(tmp_path / "run"),
        "src_subword_type": "bpe",
    }
    model = build_model(SMALL, VOCABULARIES)
    options, files = with_subword_files(options)  # as training saves them
    save(tmp_path / "run" / "step_3", model, SMALL, VOCABULARIES, options, others=files)
    remember_best(tmp_path / "run", 3, "bleu", 31.25)
    export(tmp_path / "run", tmp_path / "exported")
    return Subwords(tmp_path / "exported", source, target)


def test_subword_models_come_along(subwords: Subwords) -> None:
    options = load(subwords.exported).options
    for side, path in (("src", subwords.source), ("tgt", subwords.target)):
        copied = Path(options[f"{side}_subword_model"])
        assert copied.parent == subwords.exported
        assert copied.read_bytes() == path.read_bytes()


def test_options_of_subwords_come_along(subwords: Subwords) -> None:
    """With the transform that reads them, which only a corpus named."""
    options = load(subwords.exported).options
    assert options["transforms"] == ["filtertoolong", "bpe"]
    assert options["src_subword_type"] == "bpe"


def test_no_path_of_subword_models_comes_along(subwords: Subwords, tmp_path: Path) -> None:
    assert str(tmp_path).encode() not in texts(subwords.exported)


def test_the_card_has_the_measure_of_the_best_checkpoint(subwords: Subwords) -> None:
    assert "| bleu (dev) | 31.25 |" in (subwords.exported / "README.md").read_text()


def test_a_changed_subword_model_is_refused(subwords: Subwords) -> None:
    (subwords.exported / "src_subword_model.codes").write_text("other merges")
    with pytest.raises(CheckpointError, match=r"src_subword_model.codes: its content is not what"):
        load(subwords.exported)


# --- what cannot be exported ---


@pytest.mark.parametrize(
    ("options", "dtype", "message"),
    [
        pytest.param(
            {}, ["--dtype", "float16"], "is too large for float16; export as bfloat16", id="weight"
        ),
        pytest.param(
            {"src_subword_model": "{folder}/gone.codes"},
            [],
            "is not a file of this folder",
            id="missing subword model",
        ),
        pytest.param(
            {"src_onmttok_kwargs": "{'bpe_model_path': '/home/somebody/bpe.codes'}"},
            [],
            "src_onmttok_kwargs: bpe_model_path: name it in src_subword_model",
            id="path in a mapping",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(
    tmp_path: Path, options: dict[str, str], dtype: list[str], message: str
) -> None:
    options = {name: value.replace("{folder}", str(tmp_path)) for name, value in options.items()}
    model = build_model(SMALL, VOCABULARIES)
    with torch.no_grad():
        model.generator.bias[0] = 1e6
    save(tmp_path / "model", model, SMALL, VOCABULARIES, options)
    assert message in refusal(main, [tmp_path / "model", tmp_path / "out", *dtype])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such model folder" in refusal(main, [tmp_path / "nothing", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    (tmp_path / "out").mkdir()
    message = refusal(main, [tmp_path / "model", tmp_path / "out"])
    assert "exists already; name a new folder" in message


# --- private files that the folder of a stranger names ---


class Named(NamedTuple):
    """How such a folder names a private file."""

    name: str
    """{private}: its path."""
    is_link: bool
    message: str


NOT_IN_FOLDER, LINK = "is not a file of this folder", "is a link out of the folder"
NAMED = {
    "path": Named("{private}", False, NOT_IN_FOLDER),
    "relative path": Named("../home/key", False, NOT_IN_FOLDER),
    "name in the working directory": Named("key", False, NOT_IN_FOLDER),
    "folder above": Named("..", False, NOT_IN_FOLDER),
    "path in the working directory": Named("./key", False, NOT_IN_FOLDER),
    "link": Named("codes", True, LINK),
    "link in place of the cells": Named("cells.tsv", True, LINK),
}


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private file, `key` in the working directory."""
    path = tmp_path / "home" / "key"
    path.parent.mkdir()
    path.write_text("PRIVATE KEY")
    monkeypatch.chdir(path.parent)
    return path


@pytest.fixture(params=NAMED.values(), ids=NAMED)
def named(request: pytest.FixtureRequest) -> Named:
    named: Named = request.param
    return named


@pytest.fixture
def stranger(named: Named, private: Path, tmp_path: Path) -> Path:
    """A folder whose checksums are in order."""
    name = named.name.replace("{private}", str(private))
    options = {"transforms": ["bpe"], "src_subword_model": name}
    folder = tmp_path / "model"
    save(folder, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, options)
    if named.is_link:
        (folder / name).symlink_to(private)
    write_list(folder)
    return folder


def test_a_private_file_is_not_exported(named: Named, stranger: Path, tmp_path: Path) -> None:
    assert named.message in refusal(main, [stranger, tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_names_a_private_file_is_not_loaded(named: Named, stranger: Path) -> None:
    with pytest.raises(UserError, match=named.message):
        load(stranger)


@pytest.mark.parametrize("named", [NAMED["link"]], indirect=True)
def test_verifying_names_a_link_out_of_the_folder(named: Named, stranger: Path) -> None:
    assert differences(stranger)[0].startswith(f"{stranger / named.name}: {LINK}")


@pytest.mark.parametrize("name", ["vocab.json", "config.yaml", "SHA256SUMS", "training"])
def test_a_link_out_of_a_model_folder_is_refused(tmp_path: Path, name: str) -> None:
    model = build_model(SMALL, VOCABULARIES)
    save(tmp_path / "model", model, SMALL, VOCABULARIES, {}, {"steps": 3})
    (tmp_path / "model" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "model" / name).symlink_to(tmp_path / "elsewhere")
    read = read_training_state if name == "training" else load
    with pytest.raises(UserError, match=f"{name}.*: is a link out of the folder, to .*elsewhere"):
        read(tmp_path / "model")


def test_links_within_a_folder_and_to_it_are_followed(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, {})
    (tmp_path / "model" / "vocab.json").rename(tmp_path / "model" / "words.json")
    (tmp_path / "model" / "vocab.json").symlink_to("words.json")
    write_list(tmp_path / "model")
    (tmp_path / "link").symlink_to("model")
    assert load(tmp_path / "link").vocabularies == VOCABULARIES


def test_a_file_that_no_transform_reads_is_not_exported(tmp_path: Path) -> None:
    options = {"transforms": ["filtertoolong"], "src_subword_model": "key.txt"}
    model, files = build_model(SMALL, VOCABULARIES), {"key.txt": b"PRIVATE KEY"}
    save(tmp_path / "model", model, SMALL, VOCABULARIES, options, others=files)
    export(tmp_path / "model", tmp_path / "out")
    assert b"PRIVATE KEY" not in texts(tmp_path / "out")
    assert load(tmp_path / "out").options["transforms"] == ["filtertoolong"]


@pytest.mark.parametrize("source", ["run", "run/step_3"])
@pytest.mark.parametrize(
    "best",
    [
        "{", "[]", '{"step": 3}', '{"step": 3, "metric": "bleu", "value": "x"}',
        '{"step": 3, "metric": 1, "value": 1}', '{"step": 3, "metric": "bleu", "value": [1]}',
    ],
)  # fmt: skip
def test_a_damaged_best_json_is_one_line(tmp_path: Path, best: str, source: str) -> None:
    model = build_model(SMALL, VOCABULARIES)
    save(tmp_path / "run" / "step_3", model, SMALL, VOCABULARIES, {})
    (tmp_path / "run" / "best.json").write_text(best)
    assert "best.json: " in refusal(main, [tmp_path / source, tmp_path / "out"])
    assert not (tmp_path / "out").exists()
