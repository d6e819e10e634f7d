"""`onmt-entmax export` takes subword models and their options along, but no private paths."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.checkpoint import CheckpointError, load, save, with_subword_files
from onmt_entmax.model import build_model
from onmt_entmax.train.kept_checkpoints import remember_best
from tests.cli.exporting import export, mentions
from tests.models import BRNN, VOCABULARIES


class Subwords(NamedTuple):
    """An exported run, and the private files of its subword models."""

    exported: Path
    source: Path
    target: Path


@pytest.fixture(params=["both.codes", "target.codes"], ids=["shared", "separate"])
def subwords(request: pytest.FixtureRequest, tmp_path: Path) -> Subwords:
    """Source and target have the same file of merges, or one each."""
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
    model = build_model(BRNN, VOCABULARIES)
    options, files = with_subword_files(options)  # as training saves them
    save(tmp_path / "run" / "step_3", model, BRNN, VOCABULARIES, options, others=files)
    remember_best(tmp_path / "run", 3, "bleu", 31.25)
    export(tmp_path / "run", tmp_path / "exported")
    return Subwords(tmp_path / "exported", source, target)


def test_an_exported_folder_has_the_subword_models(subwords: Subwords) -> None:
    options = load(subwords.exported).options
    for side, path in (("src", subwords.source), ("tgt", subwords.target)):
        copied = Path(options[f"{side}_subword_model"])
        assert copied.parent == subwords.exported
        assert copied.read_bytes() == path.read_bytes()


def test_an_exported_folder_keeps_the_options_of_subwords(subwords: Subwords) -> None:
    """The transform that reads them comes too, though only a corpus named it."""
    options = load(subwords.exported).options
    assert options["transforms"] == ["filtertoolong", "bpe"]
    assert options["src_subword_type"] == "bpe"


def test_an_exported_folder_names_no_path_of_the_subword_models(
    subwords: Subwords, tmp_path: Path
) -> None:
    assert not mentions(subwords.exported, str(tmp_path))


def test_the_card_has_the_measure_of_the_best_checkpoint(subwords: Subwords) -> None:
    assert "| bleu (dev) | 31.25 |" in (subwords.exported / "README.md").read_text()


def test_a_changed_subword_model_is_refused(subwords: Subwords) -> None:
    (subwords.exported / "src_subword_model.codes").write_text("other merges")
    with pytest.raises(CheckpointError, match=r"src_subword_model.codes: its content is not what"):
        load(subwords.exported)
