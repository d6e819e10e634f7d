"""`tools.papers.sparsemax nli`: training, evaluation and pictures of sentence pairs."""

import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.in_process import exit_status, refusal
from tests.papers.nli_pairs import SMALL, write_pairs
from tools.papers import sparsemax


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


TRAIN = ["nli", "train", "nli.yaml", "--out"]


def write_nli_settings(**changes: object) -> None:
    """Write `nli.yaml`. The best epoch is chosen by the accuracy on the training pairs."""
    content = {**vars(SMALL), "held_out": 0.0, "dev": "pairs.tsv", "epochs": 12, **changes}
    Path("nli.yaml").write_text(yaml.safe_dump(content))


class Trained(NamedTuple):
    """A folder with `pairs.tsv` and two models that have learned all of its pairs.

    Each model, `sparsemax` and `none`, has the name of its attention.
    """

    folder: Path
    printed: str
    """What the trainings printed."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("nli")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(folder)
        write_pairs(Path("pairs.tsv"))
        write_nli_settings()
        for kind in ("sparsemax", "none"):
            assert exit_status(sparsemax.main, [*TRAIN, kind, "--attention", kind]) == 0
    return Trained(folder, printed.getvalue())


@pytest.fixture
def models(trained: Trained) -> None:
    """Copy the models and `pairs.tsv` to the working directory."""
    shutil.copytree(trained.folder, Path(), dirs_exist_ok=True)


# --- training --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sparsemax", "none"])
def test_training_prints_its_best_epoch(trained: Trained, model: str) -> None:
    assert f"{model}: best epoch: accuracy 100.00 %" in trained.printed


@pytest.mark.usefixtures("models")
def test_a_model_is_not_overwritten() -> None:
    weights = Path("none/model.safetensors")
    before = weights.read_bytes()
    assert "none: is there already" in refusal(sparsemax.main, [*TRAIN, "none"])
    assert weights.read_bytes() == before


def test_a_training_without_epochs_is_refused() -> None:
    write_nli_settings(epochs=0)
    assert "nli.yaml: epochs: must be" in refusal(sparsemax.main, [*TRAIN, "new"])


# --- evaluation ------------------------------------------------------------------------------

EVALUATE = ["nli", "evaluate", "sparsemax", "none", "--output", "out.jsonl", "--data"]


@pytest.fixture
def snli(models: None) -> Path:
    """A file in the format of SNLI, with one pair and its parses; the models are beside it."""
    pair = {
        "gold_label": "neutral",
        "sentence1_binary_parse": "( ( A cat ) runs )",
        "sentence2_binary_parse": "( it runs )",
    }
    Path("snli.jsonl").write_text(json.dumps(pair) + "\n")
    return Path("snli.jsonl")


@pytest.mark.usefixtures("snli")
@pytest.mark.parametrize("model", ["sparsemax", "none"])
@pytest.mark.parametrize("data", ["pairs.tsv", "snli.jsonl"])
def test_both_models_are_evaluated(
    data: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_status(sparsemax.main, [*EVALUATE, data]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (head,) = (row for row in rows if row[:1] == ["run"])
    (row,) = (row for row in rows if row[:2] == [model, model])  # name of the run, and attention
    figures = dict(zip(head, row, strict=True))
    assert (figures["seed"], figures["accuracy"]) == ("1", "100.00")


def test_predictions_have_the_words_of_the_parses(snli: Path) -> None:
    assert exit_status(sparsemax.main, [*EVALUATE, str(snli)]) == 0
    assert json.loads(Path("out.jsonl").read_text())["premise"] == ["a", "cat", "runs"]


# --- pictures --------------------------------------------------------------------------------

DRAW = ["nli", "figures", "sparsemax", "--data", "pairs.tsv", "--out", "pictures", "--lines"]


@pytest.mark.usefixtures("models")
def test_attention_of_lines_is_drawn() -> None:
    assert exit_status(sparsemax.main, [*DRAW, "2", "5"]) == 0
    pictures = {path.name: path.read_bytes() for path in Path("pictures").iterdir()}
    assert pictures.keys() == {f"line-{line}.{kind}" for line in (2, 5) for kind in ("pdf", "png")}
    assert pictures["line-2.png"] != pictures["line-5.png"]


@pytest.mark.usefixtures("models")
def test_a_line_that_is_not_there_is_named() -> None:
    assert "line 99 has no pair" in refusal(sparsemax.main, [*DRAW, "99"], progress=True)
