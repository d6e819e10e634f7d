"""`onmt-entmax export`: a clean folder that translates alike, and names nothing of this machine."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    find_model,
    load,
    read_training_state,
    remember_best,
    save,
    with_subword_files,
)
from onmt_entmax.cli.export import main
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import differences, write_list
from onmt_entmax.model import build_model
from tests.commands import succeed
from tests.models import SMALL, VOCABULARIES


def ended(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def texts(folder: Path) -> bytes:
    """Return the content of all files of a folder, but for the weights."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".safetensors"]
    return b"\n".join(path.read_bytes() for path in files)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_an_exported_model_translates_alike(trained: Path, tmp_path: Path, dtype: str) -> None:
    run, exported = trained / "run", tmp_path / "exported"
    assert ended(run, exported, "--dtype", dtype) == 0
    outputs = []
    for model in (run, exported):
        output = tmp_path / f"{model.name}.txt"
        files = ["-src", trained / "valid.src", "-output", output]
        succeed("translate.py", "-model", model, *files, "-beam_size", 5)
        outputs.append(output.read_text())
    assert outputs[0] == outputs[1]
    weights = load(exported).model.state_dict()
    for name, weight in load(run).model.state_dict().items():
        assert weights[name].equal(weight.to(getattr(torch, dtype)).float())
    size = (exported / "model.safetensors").stat().st_size
    whole = (find_model(run) / "model.safetensors").stat().st_size
    assert size == whole if dtype == "float32" else size < 0.6 * whole


def test_it_holds_what_others_need_and_nothing_else(trained: Path, tmp_path: Path) -> None:
    exported = tmp_path / "exported"
    assert ended(trained / "run", exported) == 0
    names = sorted(path.name for path in exported.iterdir())
    assert names == ["README.md", "SHA256SUMS", "config.yaml", "model.safetensors", "vocab.json"]
    assert differences(exported) == []
    assert str(trained).encode() not in texts(exported)
    best = find_model(trained / "run").name.removeprefix("step_")
    assert f"| updates | {best} |" in (exported / "README.md").read_text()


@pytest.mark.parametrize("shared", [True, False])
def test_subword_models_come_along(tmp_path: Path, shared: bool) -> None:
    private = tmp_path / "home" / "somebody"
    private.mkdir(parents=True)
    sides = {"src": private / "bpe.codes", "tgt": private / ("bpe.codes" if shared else "b.codes")}
    for side, path in sides.items():
        path.write_text(f"merges of {'both' if shared else side}")
    corpus = {"path_src": str(private / "x"), "path_tgt": "y", "transforms": ["bpe"]}
    options = {f"{side}_subword_model": str(path) for side, path in sides.items()} | {
        "transforms": ["filtertoolong"],
        "data": {"corpus": corpus},
        "save_model": str(tmp_path / "run"),
        "src_subword_type": "bpe",
    }
    model = build_model(SMALL, VOCABULARIES)
    options, files = with_subword_files(options)  # as training saves them
    save(tmp_path / "run" / "step_3", model, SMALL, VOCABULARIES, options, others=files)
    remember_best(tmp_path / "run", 3, "bleu", 31.25)
    exported = tmp_path / "exported"
    assert ended(tmp_path / "run", exported) == 0
    assert str(tmp_path).encode() not in texts(exported)
    loaded = load(exported)
    assert loaded.options["transforms"] == ["filtertoolong", "bpe"]
    assert loaded.options["src_subword_type"] == "bpe"
    for side, path in sides.items():
        copied = Path(loaded.options[f"{side}_subword_model"])
        assert copied.parent == exported
        assert copied.read_bytes() == path.read_bytes()
    assert "| bleu (dev) | 31.25 |" in (exported / "README.md").read_text()
    (exported / "src_subword_model.codes").write_text("other merges")
    with pytest.raises(CheckpointError, match=r"src_subword_model.codes: its content is not what"):
        load(exported)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    model = build_model(SMALL, VOCABULARIES)
    with torch.no_grad():
        model.generator.bias[0] = 1e6
    missing = {"src_subword_model": str(tmp_path / "gone.codes")}
    mapping = {"src_onmttok_kwargs": "{'bpe_model_path': '/home/somebody/bpe.codes'}"}
    save(tmp_path / "model", model, SMALL, VOCABULARIES, {})
    save(tmp_path / "mapping", model, SMALL, VOCABULARIES, mapping)
    save(tmp_path / "subwords", model, SMALL, VOCABULARIES, missing)
    for source, more, message in (
        ("model", ["--dtype", "float16"], "is too large for float16; export as bfloat16"),
        ("subwords", [], "src_subword_model: .* is not a file of this folder"),
        ("mapping", [], "src_onmttok_kwargs: bpe_model_path: name it in src_subword_model"),
        ("nothing", [], "no such model folder"),
    ):
        with pytest.raises(UserError, match=message):
            ended(tmp_path / source, tmp_path / "out", *more)
        assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="exists already; name a new folder"):
        ended(tmp_path / "model", tmp_path / "subwords")


def stranger(tmp_path: Path, monkeypatch, named: str, link: bool) -> Path:
    """Return a folder of a stranger, with checksums in order, that names or links a private file.

    The private file is `home/key`, and `key` in the current folder.
    """
    private = tmp_path / "home" / "key"
    private.parent.mkdir()
    private.write_text("PRIVATE KEY")
    monkeypatch.chdir(private.parent)
    options = {"transforms": ["bpe"], "src_subword_model": named.replace("@", str(private))}
    folder = tmp_path / "model"
    save(folder, build_model(SMALL, VOCABULARIES), SMALL, VOCABULARIES, options)
    if link:
        (folder / named).symlink_to(private)
    write_list(folder)
    return folder


@pytest.mark.parametrize(
    ("named", "link"),
    [
        ("@", False), ("../home/key", False), ("key", False), ("..", False), ("./key", False),
        ("codes", True), ("cells.tsv", True),
    ],
)  # fmt: skip
def test_a_private_file_that_a_stranger_names_is_not_given_away(
    tmp_path: Path, monkeypatch, named: str, link: bool
) -> None:
    folder = stranger(tmp_path, monkeypatch, named, link)
    said = "is a link out of the folder" if link else "is not a file of this folder"
    with pytest.raises(UserError, match=said):
        ended(folder, tmp_path / "given")
    with pytest.raises(UserError, match=said):
        load(folder)
    assert not (tmp_path / "given").exists()
    if link:
        assert differences(folder)[0].startswith(f"{folder / named}: is a link out of the folder")


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
    assert ended(tmp_path / "model", tmp_path / "given") == 0
    assert b"PRIVATE KEY" not in texts(tmp_path / "given")
    assert load(tmp_path / "given").options["transforms"] == ["filtertoolong"]


@pytest.mark.parametrize(
    "best",
    [
        "{", "[]", '{"step": 3}', '{"step": 3, "metric": "bleu", "value": "x"}',
        '{"step": 3, "metric": 1, "value": 1}', '{"step": 3, "metric": "bleu", "value": [1]}',
    ],
)  # fmt: skip
def test_a_damaged_best_json_is_one_line(tmp_path: Path, best: str) -> None:
    model = build_model(SMALL, VOCABULARIES)
    save(tmp_path / "run" / "step_3", model, SMALL, VOCABULARIES, {})
    (tmp_path / "run" / "best.json").write_text(best)
    for source in ("run", "run/step_3"):
        with pytest.raises(UserError, match=r"best\.json: "):
            ended(tmp_path / source, tmp_path / "given")
    assert not (tmp_path / "given").exists()
