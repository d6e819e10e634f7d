"""`onmt-entmax import-onmt`: models that stock OpenNMT-py has trained.

Each is trained by OpenNMT-py in this process, imported, and compared with what OpenNMT-py outputs.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.checkpoint import read_config
from onmt_entmax.cli import import_onmt, score
from onmt_entmax.cli.foreign_checkpoint import FOREIGN, Inert, stand_in
from tests.cli.stock_models import StockModel, stock
from tests.commands import json_lines, succeed
from tests.in_process import exit_status, refusal

# --- what an imported model computes ---


class StockOutput(NamedTuple):
    """An output of stock OpenNMT-py with beam 5, and its log-probability."""

    text: str
    log_prob: float


ROUNDING = 1e-4  # of log-probabilities, which OpenNMT-py writes with four digits
BETTER = 1e-5  # a log-probability that is surely larger
SEARCH = ("-beam_size", "5", "-length_penalty", "none", "-batch_size", "7")


@pytest.fixture(scope="module")
def stock_outputs(
    stock_model: StockModel, tmp_path_factory: pytest.TempPathFactory
) -> list[StockOutput]:
    """What stock OpenNMT-py outputs for the development set."""
    source, output = stock_model.folder / "valid.src", tmp_path_factory.mktemp("stock") / "out"
    arguments = ["-model", stock_model.checkpoint, "-src", source, "-output", output]
    stock("translate", *map(str, arguments), *SEARCH, "-with_score")
    rows = (line.split("\t") for line in output.read_text().splitlines())
    return [StockOutput(text, float(score)) for text, score in rows]


def test_an_imported_model_translates_as_stock_does(
    stock_model: StockModel, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    """Its best output is that of stock OpenNMT-py, or a more probable one.

    Stock's beam drops an ending that is not among its five best steps; ours never does.
    """
    succeed(
        "translate.py", "-model", stock_model.imported, "-src", stock_model.folder / "valid.src",
        "-output", tmp_path / "out", "-exactness_report", tmp_path / "report.jsonl", *SEARCH,
    )  # fmt: skip
    records = json_lines(tmp_path / "report.jsonl")
    for record, expected in zip(records, stock_outputs, strict=True):
        best = record["hypotheses"][0]
        gain = best["log_prob"] - expected.log_prob
        least_gain = -ROUNDING if best["text"] == expected.text else BETTER
        assert gain >= least_gain


def test_an_imported_model_scores_as_stock_does(
    stock_model: StockModel, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    (tmp_path / "texts").write_text("".join(f"{output.text}\n" for output in stock_outputs))
    files = ["-src", stock_model.folder / "valid.src", "-tgt", tmp_path / "texts"]
    arguments = ["-model", stock_model.imported, *files, "-output", tmp_path / "scores.jsonl"]
    assert exit_status(score.main, list(map(str, arguments))) == 0
    scores = [line["log_prob"] for line in json_lines(tmp_path / "scores.jsonl")]
    assert scores == pytest.approx([output.log_prob for output in stock_outputs], abs=ROUNDING)


# --- what is kept of a checkpoint ---


def test_alphas_of_the_checkpoint_are_kept(stock_model: StockModel) -> None:
    config = read_config(stock_model.imported).network
    alpha = 2 if stock_model.name == "sparsemax" else 1
    assert (config.generator_alpha, config.global_attention_alpha) == (alpha, alpha)


def test_shared_embeddings_of_the_checkpoint_are_kept(stock_model: StockModel) -> None:
    config = read_config(stock_model.imported).network
    assert config.share_embeddings == (stock_model.name == "transformer")


def test_shared_vocabularies_of_the_checkpoint_are_kept(stock_model: StockModel) -> None:
    tokens = json.loads((stock_model.imported / "vocab.json").read_text(encoding="utf-8"))
    assert (tokens["source"] == tokens["target"]) == (stock_model.name == "transformer")


def test_options_of_the_checkpoint_are_kept(stock_model: StockModel) -> None:
    options = read_config(stock_model.imported).options
    assert options["optim"] == "adam"


def test_folders_of_the_checkpoint_are_not_kept(stock_model: StockModel) -> None:
    assert str(stock_model.folder) not in (stock_model.imported / "config.yaml").read_text()


def test_no_foreign_class_of_a_checkpoint_is_loaded(stock_model: StockModel) -> None:
    with torch.serialization.safe_globals([stand_in(name) for name in FOREIGN]):
        content = torch.load(stock_model.checkpoint, weights_only=True)
    assert isinstance(content["opt"], Inert)


# --- the folder that is written ---


def test_a_folder_is_not_overwritten(stock_model: StockModel) -> None:
    line = refusal(import_onmt.main, [stock_model.checkpoint, stock_model.imported, "--yes"])
    assert "exists already" in line


def test_a_link_is_not_replaced(stock_model: StockModel, working_folder: Path) -> None:
    (working_folder / "link").symlink_to("missing")
    line = refusal(import_onmt.main, [stock_model.checkpoint, "link", "--yes"])
    assert "link: exists already" in line
    assert (working_folder / "link").is_symlink()


@pytest.mark.parametrize(
    ("folder", "named"),
    [
        pytest.param("loop/imported", "loop/imported: ", id="below a loop"),
        pytest.param("a\0b", r"'a\x00b': ", id="a null byte"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(
    stock_model: StockModel, working_folder: Path, folder: str, named: str
) -> None:
    """The rest of `tests/cli/test_paths.py`: these paths are noticed with a whole checkpoint."""
    (working_folder / "loop").symlink_to("loop")
    line = refusal(import_onmt.main, [stock_model.checkpoint, folder, "--yes"], progress=True)
    assert named in line
    assert [path.name for path in working_folder.iterdir()] == ["loop"]
