"""`onmt-entmax import-onmt`: models that stock OpenNMT-py has trained.

Each is trained by OpenNMT-py in this process, imported, and compared with what OpenNMT-py outputs.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import read_config
from onmt_entmax.cli import import_onmt, score, train, translate
from onmt_entmax.cli.foreign_checkpoint import FOREIGN, Inert, stand_in
from tests.cli.stock_models import DEV_SIZE, MODELS, stock, train_stock
from tests.commands import json_lines, succeed
from tests.in_process import exit_status, refusal, success


class Stock(NamedTuple):
    """A model that stock OpenNMT-py has trained, and the folder that it was imported to."""

    name: str
    folder: Path
    """With `stock.yaml` and the corpora."""
    checkpoint: Path
    imported: Path


@pytest.fixture(scope="module", params=MODELS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    folder = tmp_path_factory.mktemp(request.param)
    checkpoint = train_stock(folder, MODELS[request.param])
    imported = folder / "imported"
    assert "weights" in succeed("onmt_entmax", "import-onmt", checkpoint, imported, "--yes")
    return Stock(request.param, folder, checkpoint, imported)


# --- what it computes ---


class StockOutput(NamedTuple):
    """An output of stock OpenNMT-py with beam 5, and its log-probability."""

    text: str
    log_prob: float


ROUNDING = 1e-4  # of log-probabilities, which OpenNMT-py writes with four digits
BETTER = 1e-5  # a log-probability that is surely larger
SEARCH = ("-beam_size", "5", "-length_penalty", "none", "-batch_size", "7")


@pytest.fixture(scope="module")
def stock_outputs(trained: Stock) -> list[StockOutput]:
    source, output = trained.folder / "valid.src", trained.folder / "stock.out"
    arguments = ["-model", trained.checkpoint, "-src", source, "-output", output]
    stock("translate", *map(str, arguments), *SEARCH, "-with_score")
    rows = (line.split("\t") for line in output.read_text().splitlines())
    return [StockOutput(text, float(score)) for text, score in rows]


def test_an_imported_model_translates_as_stock_does(
    trained: Stock, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    """Its best output is that of stock OpenNMT-py, or a more probable one.

    Stock's beam drops an ending that is not among its five best steps; ours never does.
    """
    succeed(
        "translate.py", "-model", trained.imported, "-src", trained.folder / "valid.src",
        "-output", tmp_path / "out", "-exactness_report", tmp_path / "report.jsonl", *SEARCH,
    )  # fmt: skip
    records = json_lines(tmp_path / "report.jsonl")
    for record, expected in zip(records, stock_outputs, strict=True):
        best = record["hypotheses"][0]
        gain = best["log_prob"] - expected.log_prob
        least_gain = -ROUNDING if best["text"] == expected.text else BETTER
        assert gain >= least_gain


def test_an_imported_model_scores_as_stock_does(
    trained: Stock, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    (tmp_path / "texts").write_text("".join(f"{output.text}\n" for output in stock_outputs))
    files = ["-src", trained.folder / "valid.src", "-tgt", tmp_path / "texts"]
    arguments = ["-model", trained.imported, *files, "-output", tmp_path / "scores.jsonl"]
    assert exit_status(score.main, list(map(str, arguments))) == 0
    scores = [line["log_prob"] for line in json_lines(tmp_path / "scores.jsonl")]
    assert scores == pytest.approx([output.log_prob for output in stock_outputs], abs=ROUNDING)


# --- what is kept ---


def test_alphas_of_the_checkpoint_are_kept(trained: Stock) -> None:
    config = read_config(trained.imported).network
    alpha = 2 if trained.name == "sparsemax" else 1
    assert (config.generator_alpha, config.global_attention_alpha) == (alpha, alpha)


def test_shared_embeddings_of_the_checkpoint_are_kept(trained: Stock) -> None:
    config = read_config(trained.imported).network
    assert config.share_embeddings == (trained.name == "transformer")


def test_shared_vocabularies_of_the_checkpoint_are_kept(trained: Stock) -> None:
    tokens = json.loads((trained.imported / "vocab.json").read_text(encoding="utf-8"))
    assert (tokens["source"] == tokens["target"]) == (trained.name == "transformer")


def test_options_of_the_checkpoint_are_kept(trained: Stock) -> None:
    options = read_config(trained.imported).options
    assert options["optim"] == "adam"


def test_folders_of_the_checkpoint_are_not_kept(trained: Stock) -> None:
    assert str(trained.folder) not in (trained.imported / "config.yaml").read_text()


def test_a_folder_is_not_overwritten(trained: Stock) -> None:
    line = refusal(import_onmt.main, [trained.checkpoint, trained.imported, "--yes"])
    assert "exists already" in line


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        pytest.param("loop/imported", "loop/imported: ", id="below a loop"),
        pytest.param("a\0b", r"'a\x00b': ", id="a null byte"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(
    trained: Stock, working_folder: Path, folder: str, named: str
) -> None:
    """The rest of `tests/cli/test_paths.py`: these paths are noticed with a whole checkpoint."""
    (working_folder / "loop").symlink_to("loop")
    line = refusal(import_onmt.main, [trained.checkpoint, folder, "--yes"], progress=True)
    assert named in line
    assert [path.name for path in working_folder.iterdir()] == ["loop"]


def test_no_foreign_class_of_a_checkpoint_is_loaded(trained: Stock) -> None:
    with torch.serialization.safe_globals([stand_in(name) for name in FOREIGN]):
        content = torch.load(trained.checkpoint, weights_only=True)
    assert isinstance(content["opt"], Inert)


# --- from OpenNMT-py to here ---


class Moved(NamedTuple):
    """A checkpoint before and after the command that translation and training name.

    They are the same calls, with OpenNMT-py's YAML file and checkpoint.
    """

    model: Path
    """The folder to which the command imports the checkpoint."""
    named: list[str]
    """The commands that translation and training name."""
    output: list[str]
    """Lines of the translation after it."""
    translation: str
    """What the translation prints then."""
    training: str
    tuned: list[str]
    """Lines of a translation by the model that the training made."""
    without_reset: str
    """The error of the training without `-reset_optim`."""
    outdated: str
    """The error of the translation when there is another checkpoint under this name."""


def named_command(error: str) -> str:
    """Return the command that an error names."""
    (command,) = re.findall("onmt-entmax (import-onmt .*)", error)
    return str(command)


@pytest.fixture(scope="module")
def moved(trained: Stock, tmp_path_factory: pytest.TempPathFactory) -> Moved:
    folder = tmp_path_factory.mktemp("moved")
    checkpoint = Path(shutil.copy(trained.checkpoint, folder))
    settings = yaml.safe_load((trained.folder / "stock.yaml").read_text())
    settings |= {"train_from": str(checkpoint), "save_model": str(folder / "tuned")}
    settings |= {"train_steps": 5, "reset_optim": "all", "gpu_ranks": [0]}
    (folder / "tune.yaml").write_text(yaml.safe_dump(settings))
    training = ["-config", folder / "tune.yaml"]
    files = ["-src", trained.folder / "valid.src", "-output", folder / "out"]
    translating = ["-model", checkpoint, *files]

    errors = [
        refusal(translate.main, translating, progress=True),
        refusal(train.main, training, progress=True),
    ]
    named = [named_command(error) for error in errors]
    succeed("onmt_entmax", *shlex.split(named[0]), "--yes")
    translation = success(translate.main, translating)
    output = (folder / "out").read_text().splitlines()
    training_here = success(train.main, training)
    others = ["-reset_optim", "none", "-save_model", folder / "other"]
    without_reset = refusal(train.main, [*training, *others], progress=True)
    success(translate.main, ["-model", folder / "tuned", *files])
    tuned = (folder / "out").read_text().splitlines()
    os.utime(checkpoint, (2**33, 2**33))  # newer than the imported folder
    return Moved(
        model=checkpoint.with_suffix(""),
        named=named,
        output=output,
        translation=translation,
        training=training_here,
        tuned=tuned,
        without_reset=without_reset,
        outdated=refusal(translate.main, translating, progress=True),
    )


def test_translation_and_training_name_the_same_command(moved: Moved) -> None:
    first, second = moved.named
    assert first == second


def test_after_the_command_the_checkpoint_translates(moved: Moved) -> None:
    assert f"model: {moved.model}" in moved.translation
    assert len(moved.output) == DEV_SIZE


def test_after_the_command_the_yaml_file_trains(moved: Moved) -> None:
    assert f"continuing from {moved.model}" in moved.training


def test_the_trained_model_translates(moved: Moved) -> None:
    assert len(moved.tuned) == DEV_SIZE


def test_a_training_needs_another_optimiser(moved: Moved) -> None:
    assert "add -reset_optim all" in moved.without_reset


def test_another_checkpoint_under_this_name_is_to_be_imported_again(moved: Moved) -> None:
    assert "import-onmt" in moved.outdated
