"""YAML files after OpenNMT-py's documentation: unchanged, they train and their models translate."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from onmt_entmax.cli import train, translate
from tests.cli.stock_inputs import LINES, SIZE, write_inputs
from tests.commands import ROOT, succeed
from tests.in_process import refusal, success

STOCK = {path.stem: path for path in (ROOT / "tests" / "stock").rglob("*.yaml")}
# Files that train, and a part of the note on their options.
TRAINED = {
    "quickstart": "equal values: src_vocab (lines 6 and 21), tgt_vocab (lines 7 and 22)",
    "transformer": "world_size 4 but 1 process: gradients of all batches are accumulated",
    "characters": "early_stopping_criteria accuracy as selection token_accuracy",
    "summarisation": "world_size 2 but 1 process: gradients of all batches are accumulated",
    "sentencepiece": "subword_nbest as src_subword_nbest and tgt_subword_nbest",
    "half_precision": "optim fusedadam as adam, batch_size_multiple as batches of any size",
    "two_machines": "without effect here: save_data, master_ip",
    "bpe": "without effect here: save_data, overwrite (only as a flag)",
    "tokenizer": "subword_alpha as src_subword_alpha and tgt_subword_alpha",
    "corpora": "without effect here: save_data",
    "no_validation": "early_stopping (needs data: valid)",
    "noise": "without effect here: save_data",
    "embeddings": "without effect here: save_data",
}
# Files that are refused, and what to do.
REFUSED = {
    "copy": "copy_attn: not supported: copy attention is not supported; delete the line",
    "graphs": "not 'ggnn'; graph encoders are not supported; use OpenNMT-py",
    "language_model": "not 'lm'; language models are not supported; use OpenNMT-py",
    "features": "src_feats_vocab: not supported: source features are not supported; write",
    "alignments": "lambda_align: not supported: alignment supervision is not supported; delete",
    "fine_tuning": ": onmt-entmax import-onmt data/run/model_step_1000.pt data/run/model_step_1000",
}
# Flags that shorten a training to two updates; nothing else of a file is changed.
FEW = ["-train_steps", 2, "-valid_steps", 2, "-save_checkpoint_steps", 2]
SMALL = ["-rnn_size", SIZE, "-word_vec_size", SIZE]
TRANSFORMER = ["-transformer_ff", 16, "-heads", 2, "-enc_layers", 1, "-dec_layers", 1]

# --- training and translation ----------------------------------------------------------------


def test_every_stock_file_is_tried() -> None:
    assert STOCK.keys() == {*TRAINED, *REFUSED}


@pytest.mark.parametrize("name", ["README.md", "docs/opennmt.md", "docs/architecture.md"])
def test_a_document_states_the_share_of_files_that_train(name: str) -> None:
    files = f"of {len(STOCK)} YAML files modelled on its documentation"
    share = f"{files}, {len(TRAINED)} train unchanged"
    words = (ROOT / name).read_text(encoding="utf-8").split()
    assert share.lower() in " ".join(words).lower()  # it may begin a sentence


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart", "transformer"])
def test_a_stock_file_trains_in_full_size(tmp_path: Path, name: str) -> None:
    write_inputs(STOCK[name], tmp_path)
    succeed("train.py", "-config", STOCK[name], "-train_steps", 4, cwd=tmp_path)


class Trained(NamedTuple):
    """A file with which a model was trained."""

    name: str
    config: dict[str, Any]
    """The content of the file."""
    folder: Path
    """Paths of the file are relative to it."""
    printed: str


@pytest.fixture(scope="module", params=TRAINED)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A file that trains; a test runs for each."""
    name, folder = request.param, tmp_path_factory.mktemp("stock")
    config = write_inputs(STOCK[name], folder)
    is_transformer = config.get("encoder_type") == "transformer"
    small = [*SMALL, *TRANSFORMER] if is_transformer else SMALL
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        printed = success(train.main, ["-config", STOCK[name], *FEW, *small])
    return Trained(name, config, folder, printed)


def test_options_of_a_stock_file_are_explained(trained: Trained) -> None:
    assert TRAINED[trained.name] in trained.printed


def test_embeddings_are_read_if_the_file_names_some(trained: Trained) -> None:
    assert ("vectors for" in trained.printed) == bool(trained.config.get("both_embeddings"))


def test_a_missing_gpu_is_named(trained: Trained) -> None:
    """The first of several processes without a GPU warns; `gpu_ranks: []` asks for no GPU."""
    asks_for_a_gpu = trained.config.get("gpu_ranks") not in (None, [])
    warned = "warning: gpu_ranks 0: no GPU here; running on the CPU" in trained.printed
    assert warned == (asks_for_a_gpu and not torch.cuda.is_available())


def test_a_stock_file_trains_up_to_the_limit(trained: Trained) -> None:
    assert "finished at step 2 (train_steps)" in trained.printed


def test_the_vocabulary_of_a_stock_file_is_written(trained: Trained) -> None:
    assert (trained.folder / trained.config["src_vocab"]).is_file()


def test_a_model_of_a_stock_file_translates(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained.folder)
    data = trained.config["data"]
    source = data["valid" if "valid" in data else "corpus_1"]["path_src"]
    files = ["-model", trained.config["save_model"], "-src", source, "-output", "out"]
    success(translate.main, [*files, "-gpu", 0, "-verbose", "-max_length", 8, "-beam_size", 2])
    assert len(Path("out").read_text().splitlines()) == LINES


# --- refusals --------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A file that a training refused, with the error."""

    name: str
    run: Path
    """The folder that the training would have written."""
    error: str


@pytest.fixture(scope="module", params=REFUSED)
def refused(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Refused:
    """A file that is refused; a test runs for each."""
    name, folder = request.param, tmp_path_factory.mktemp("refused")
    config = write_inputs(STOCK[name], folder)
    if "train_from" in config:  # the error names the command that imports a checkpoint
        (folder / config["train_from"]).parent.mkdir(exist_ok=True)
        (folder / config["train_from"]).write_bytes(b"a checkpoint of OpenNMT-py")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        error = refusal(train.main, ["-config", STOCK[name]], progress=True)
    return Refused(name, folder / config["save_model"], error)


def test_a_stock_file_is_refused_with_what_to_do(refused: Refused) -> None:
    assert REFUSED[refused.name] in refused.error


def test_a_refused_stock_file_writes_nothing(refused: Refused) -> None:
    assert not refused.run.exists()
