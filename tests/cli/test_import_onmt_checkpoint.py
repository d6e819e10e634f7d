"""`onmt-entmax import-onmt`: models of stock OpenNMT-py, and checkpoints that are refused."""

import argparse
import importlib
import json
import os
import random
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import read_config
from onmt_entmax.cli import import_onmt as tool
from onmt_entmax.cli import score
from onmt_entmax.cli.foreign_checkpoint import (
    FOREIGN,
    ImportingError,
    Inert,
    stand_in,
    vocabularies_of,
)
from onmt_entmax.model import SparseNMTModel, build_model
from tests.commands import fail, json_lines, run, succeed
from tests.in_process import exit_status, refusal

COMMAND = ("onmt_entmax", "import-onmt")
SMALL = {
    "encoder_type": "brnn",
    "layers": 1,
    "rnn_size": 48,
    "word_vec_size": 24,
    "batch_size": 16,
    "optim": "adam",
    "learning_rate": 0.01,
    "dropout": 0.1,
    "param_init": 0,
    "param_init_glorot": True,
    "seed": 3,
}
MODELS = {
    "recurrent": {"layers": 2, "vocab_size_multiple": 8},
    "sparsemax": {
        "rnn_type": "GRU",
        "encoder_type": "rnn",
        "global_attention": "mlp",
        "global_attention_function": "sparsemax",
        "generator_function": "sparsemax",
    },
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": 2,
        "rnn_size": 32,
        "word_vec_size": 32,
        "heads": 4,
        "transformer_ff": 64,
        "position_encoding": True,
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "learning_rate": 0.005,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
}


def write_corpus(folder: Path) -> None:
    """Write strings in small letters, and the same in capitals, for training and dev set."""
    generator = random.Random(5)
    for name, size in (("train", 300), ("valid", 40)):
        lines = [generator.choices("abcdefgh", k=generator.randint(3, 9)) for _ in range(size)]
        text = "".join(" ".join(line) + "\n" for line in lines)
        (folder / f"{name}.src").write_text(text)
        (folder / f"{name}.tgt").write_text(text.upper())


def stock(command: str, *arguments: str) -> None:
    """Run a command of stock OpenNMT-py in this process."""
    module = importlib.import_module(f"onmt.bin.{command}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [command, *arguments])
        # OpenNMT-py 2.3.0 reads its own pickles with torch.load, which newer torch refuses.
        patch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        module.main()


def train_stock(folder: Path, changes: dict[str, object]) -> Path:
    """Train a model with stock OpenNMT-py; return its checkpoint."""
    write_corpus(folder)
    config = SMALL | {
        "data": {
            "corpus_1": {"path_src": f"{folder}/train.src", "path_tgt": f"{folder}/train.tgt"},
        },
        "save_data": f"{folder}/samples",
        "src_vocab": f"{folder}/vocab.src",
        "tgt_vocab": f"{folder}/vocab.tgt",
        "save_model": f"{folder}/model",
        "train_steps": 300,
        "save_checkpoint_steps": 300,
    }
    config |= changes
    if config.get("share_vocab"):
        config["tgt_vocab"] = config["src_vocab"]
    (folder / "stock.yaml").write_text(yaml.safe_dump(config))
    stock("build_vocab", "-config", f"{folder}/stock.yaml", "-n_sample", "-1")
    stock("train", "-config", f"{folder}/stock.yaml")
    return folder / "model_step_300.pt"


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
    assert "weights" in succeed(*COMMAND, checkpoint, imported, "--yes")
    return Stock(request.param, folder, checkpoint, imported)


# --- models of stock OpenNMT-py --------------------------------------------------------------


class StockOutput(NamedTuple):
    """An output of stock OpenNMT-py with beam 5, and its log-probability."""

    text: str
    log_prob: float


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
        assert gain >= (-1e-4 if best["text"] == expected.text else 1e-5)


def test_an_imported_model_scores_as_stock_does(
    trained: Stock, stock_outputs: list[StockOutput], tmp_path: Path
) -> None:
    (tmp_path / "texts").write_text("".join(f"{output.text}\n" for output in stock_outputs))
    files = ["-src", trained.folder / "valid.src", "-tgt", tmp_path / "texts"]
    arguments = ["-model", trained.imported, *files, "-output", tmp_path / "scores.jsonl"]
    assert exit_status(score.main, list(map(str, arguments))) == 0
    scores = [line["log_prob"] for line in json_lines(tmp_path / "scores.jsonl")]
    assert scores == pytest.approx([output.log_prob for output in stock_outputs], abs=1e-4)


def test_alphas_of_the_checkpoint_are_kept(trained: Stock) -> None:
    config, _, _ = read_config(trained.imported)
    alpha = 2 if trained.name == "sparsemax" else 1
    assert config.generator_alpha == config.global_attention_alpha == alpha


def test_shared_embeddings_of_the_checkpoint_are_kept(trained: Stock) -> None:
    config, _, _ = read_config(trained.imported)
    assert config.share_embeddings == (trained.name == "transformer")


def test_shared_vocabularies_of_the_checkpoint_are_kept(trained: Stock) -> None:
    tokens = json.loads((trained.imported / "vocab.json").read_text(encoding="utf-8"))
    assert (tokens["source"] == tokens["target"]) == (trained.name == "transformer")


def test_options_of_the_checkpoint_are_kept(trained: Stock) -> None:
    _, options, _ = read_config(trained.imported)
    assert options["optim"] == "adam"


def test_folders_of_the_checkpoint_are_not_kept(trained: Stock) -> None:
    assert str(trained.folder) not in (trained.imported / "config.yaml").read_text()


def test_a_folder_is_not_overwritten(trained: Stock) -> None:
    line = refusal(tool.main, [trained.checkpoint, trained.imported, "--yes"])
    assert "exists already" in line


def test_no_foreign_class_of_a_checkpoint_is_loaded(trained: Stock) -> None:
    with torch.serialization.safe_globals([stand_in(name) for name in FOREIGN]):
        content = torch.load(trained.checkpoint, weights_only=True)
    assert isinstance(content["opt"], Inert)


def test_no_path_of_a_checkpoint_is_kept() -> None:
    paths = {"tgt_subword_model": "/home/me/.ssh/id_rsa", "src_vocab": "/home/me/v"}
    corpora = {"c": {"path_src": "/home/me/x", "path_tgt": "y", "transforms": ["bpe"]}}
    mapping = {"src_onmttok_kwargs": "{'sp_model_path': '/home/me/key'}", "src_subword_nbest": 3}
    options = tool.options_of(fake(**paths, **mapping, data=corpora))
    kept, left_out = tool.split_off_paths(options)
    assert "/home" not in repr(kept)
    assert (kept["transforms"], kept["src_subword_nbest"]) == (["bpe"], 3)
    assert left_out["tgt_subword_model"] == paths["tgt_subword_model"]
    assert left_out["src_onmttok_kwargs"] == mapping["src_onmttok_kwargs"]


def test_one_command_leads_from_stock_to_here(trained: Stock, tmp_path: Path) -> None:
    """Its YAML file and its checkpoint name the command; after it, both run unchanged."""
    config = yaml.safe_load((trained.folder / "stock.yaml").read_text())
    checkpoint = tmp_path / trained.checkpoint.name
    shutil.copy(trained.checkpoint, checkpoint)
    config |= {"train_from": str(checkpoint), "save_model": str(tmp_path / "tuned")}
    config |= {"train_steps": 5, "reset_optim": "all", "gpu_ranks": [0]}
    (tmp_path / "tune.yaml").write_text(yaml.safe_dump(config))
    source, output = trained.folder / "valid.src", tmp_path / "out"
    translating = ["translate.py", "-model", checkpoint, "-src", source, "-output", output]
    training = ["train.py", "-config", tmp_path / "tune.yaml"]
    for command in (translating, training):
        (told,) = re.findall("onmt-entmax (import-onmt .*)", fail(*command))
    succeed("onmt_entmax", *shlex.split(told), "--yes")
    assert f"model: {checkpoint.with_suffix('')}" in succeed(*translating)
    assert len(output.read_text().splitlines()) == 40
    assert f"continuing from {checkpoint.with_suffix('')}" in succeed(*training)
    succeed(*translating[:2], tmp_path / "tuned", *translating[3:])
    assert "add -reset_optim all" in fail(
        *training, "-reset_optim", "none", "-save_model", tmp_path / "other"
    )
    os.utime(checkpoint, (2**33, 2**33))  # another checkpoint under this name
    assert "import-onmt" in fail(*translating)


# --- files that are refused ------------------------------------------------------------------


class Evil:
    """An object that makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_a_program_is_refused(tmp_path: Path) -> None:
    torch.save({"model": {}, "opt": Evil(tmp_path / "harm")}, tmp_path / "evil.pt")
    message = refusal(tool.main, [tmp_path / "evil.pt", tmp_path / "out", "--yes"])
    assert "refused: it names posix.mkdir" in message
    assert not (tmp_path / "harm").exists()
    assert not (tmp_path / "out").exists()


@pytest.fixture
def some_pickle(tmp_path: Path) -> Path:
    """A file that is no checkpoint, which only opening it shows."""
    torch.save({}, tmp_path / "some.pt")
    return tmp_path / "some.pt"


def test_a_pickle_is_not_opened_if_there_is_nobody_to_ask(
    some_pickle: Path, tmp_path: Path
) -> None:
    done = run(*COMMAND, some_pickle, tmp_path / "out")
    assert done.returncode == 2
    assert "only files from people you trust" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("error: nobody to ask: give --yes to open it")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param("n\n", 1, id="no"),
        pytest.param("\n", 1, id="nothing"),
        pytest.param("y\n", 2, id="yes"),
    ],
)
def test_a_pickle_is_opened_if_a_person_says_so(
    some_pickle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    status: int,
) -> None:
    person = SimpleNamespace(isatty=lambda: True, readline=lambda: answer)
    monkeypatch.setattr(sys, "stdin", person)
    assert exit_status(tool.main, [str(some_pickle), str(tmp_path / "out")]) == status
    was_opened = "no 'model' in it" in capsys.readouterr().err
    assert was_opened == (answer == "y\n")


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.pt").write_bytes(content)
    line = refusal(tool.main, [tmp_path / "file.pt", tmp_path / "out", "--yes"])
    assert "not a checkpoint of OpenNMT-py, or damaged" in line


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(tool.main, [tmp_path / "absent.pt", tmp_path / "o", "--yes"])


def test_a_folder_is_no_checkpoint(tmp_path: Path) -> None:
    assert " is a folder; name a" in refusal(tool.main, [tmp_path, tmp_path / "o", "--yes"])


# --- what a checkpoint may say ---------------------------------------------------------------


def fake(**options: object) -> dict[str, Any]:
    """Return a checkpoint in memory, with tiny vocabularies and no weights."""
    specials = ["<unk>", "<blank>", "<s>", "</s>"]

    def field(tokens: list[str]) -> SimpleNamespace:
        return SimpleNamespace(
            fields=[("src", SimpleNamespace(vocab=SimpleNamespace(itos=tokens)))]
        )

    return {
        "model": {},
        "generator": {},
        "vocab": {"src": field([*specials[:2], "a"]), "tgt": field([*specials, "b"])},
        "opt": argparse.Namespace(**options),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_task": "lm"}, "model_task: 'lm'"),
        ({"encoder_type": "cnn"}, "encoder_type: must be .*, not 'cnn'"),
        ({"decoder_type": "transformer"}, "needs it on both sides"),
        ({"rnn_type": "SRU"}, "rnn_type: must be .*, not 'SRU'"),
        ({"bridge": True}, "mixes the sentences"),
        ({"position_encoding": True}, "trains another model than it searches"),
        ({"enc_rnn_size": 3, "dec_rnn_size": 4}, "must equal dec_rnn_size"),
        ({"layers": 1}, "the weights do not fit the options: encoder"),
        ({"dropout": []}, "dropout: must be "),
        ({"bridge": "yes", "layers": 1}, "bridge: must be true or false"),
        ({"word_vec_size": 10**400}, "src_word_vec_size: must be a whole number"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(fake(**options))
    assert "\n" not in str(caught.value)


def convert(content: dict[str, Any]) -> SparseNMTModel:
    """Return the model of a checkpoint in memory."""
    config = tool.model_config(tool.options_of(content))
    return tool.model_of(content, config, vocabularies_of(content))


def whole() -> dict[str, Any]:
    """Return a checkpoint in memory, with the weights of a tiny model."""
    content = fake(layers=1, rnn_size=4, word_vec_size=2)
    config = tool.model_config(tool.options_of(content))
    weights = build_model(config, vocabularies_of(content)).state_dict()
    for name, weight in weights.items():
        part, short = "model", name
        if name.startswith("generator."):
            part, short = "generator", name.replace("generator.", "0.")
        content[part][short] = weight.clone()
    return content


BIAS = "0.bias"  # of five target tokens


def with_bias(bias: Any) -> dict[str, Any]:
    """Return a checkpoint with another bias of the output."""
    content = whole()
    content["generator"][BIAS] = bias
    return content


def without_bias() -> dict[str, Any]:
    content = whole()
    del content["generator"][BIAS]
    return content


def with_another_weight() -> dict[str, Any]:
    content = whole()
    content["model"][7] = torch.ones(1)
    return content


def with_odd_source_fields() -> dict[str, Any]:
    content = whole()
    content["vocab"]["src"].fields.append(3)
    return content


def with_target_tokens(tokens: Any) -> dict[str, Any]:
    """Return a checkpoint with another list of target tokens."""
    content = whole()
    content["vocab"]["tgt"].fields[0][1].vocab.itos = tokens
    return content


HOSTILE: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "no bias": (without_bias, "generator.bias: is missing"),
    "None for a weight": (partial(with_bias, None), "not a tensor of floats"),
    "a bias too long": (partial(with_bias, torch.ones(6)), r"\[6\], where the model"),
    "a sparse bias": (partial(with_bias, torch.ones(5).to_sparse()), "not a tensor of floats"),
    "without memory": (partial(with_bias, torch.ones(5, device="meta")), "generator.bias"),
    "nan": (partial(with_bias, torch.full((5,), torch.nan)), "not finite"),
    "a weight too many": (with_another_weight, "7: the model has no such weight"),
    "fields that are none": (with_odd_source_fields, "no src vocabulary"),
    "tokens that are no list": (
        partial(with_target_tokens, 5),
        "vocabulary: target: must be a list",
    ),
}


def test_a_whole_checkpoint_is_converted() -> None:
    convert(whole())


@pytest.mark.parametrize(("make", "message"), HOSTILE.values(), ids=HOSTILE)
def test_damaged_and_hostile_contents_are_refused_in_one_line(
    make: Callable[[], dict[str, Any]], message: str
) -> None:
    with pytest.raises(ImportingError, match=message) as caught:
        convert(make())
    assert "\n" not in str(caught.value)


def test_source_features_are_refused() -> None:
    content = fake()
    content["vocab"]["src"].fields.append(("pos", None))
    with pytest.raises(ImportingError, match="source features are not supported"):
        vocabularies_of(content)


def test_a_vocabulary_without_a_special_token_is_refused() -> None:
    content = fake()
    content["vocab"]["tgt"].fields[0][1].vocab.itos.remove("</s>")
    with pytest.raises(ImportingError, match=r"target: the special token '</s>' is missing"):
        vocabularies_of(content)


def test_a_checkpoint_without_vocabularies_is_refused() -> None:
    with pytest.raises(ImportingError, match="no src vocabulary"):
        vocabularies_of({"vocab": {}})
