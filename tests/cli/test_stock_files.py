"""YAML files after OpenNMT-py's documentation: unchanged, they train and their models translate."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.commands import ROOT, fail, succeed

STOCK = {path.stem: path for path in (ROOT / "tests" / "stock").rglob("*.yaml")}
# Files that train, and a part of what is said about their options.
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
    "noise": "best checkpoint",
    "embeddings": "vectors for",
}
# Files that are refused, and what to do.
REFUSED = {
    "copy": "copy_attn: not supported: copy attention is not supported; delete the line",
    "graphs": "not 'ggnn'; graph encoders are not supported; use OpenNMT-py",
    "language_model": "not 'lm'; language models are not supported; use OpenNMT-py",
    "features": "src_feats_vocab: not supported: source features are not supported; write a feat",
    "alignments": "lambda_align: not supported: alignment supervision is not supported; delete",
    "fine_tuning": ": onmt-entmax import-onmt data/run/model_step_1000.pt data/run/model_step_1000",
}
# Of every file, only sizes and limits are changed, by flags.
FEW = ["-train_steps", 5, "-valid_steps", 5, "-save_checkpoint_steps", 5]
SMALL = ["-rnn_size", 16, "-word_vec_size", 16]
TRANSFORMER = ["-transformer_ff", 16, "-heads", 2, "-enc_layers", 1, "-dec_layers", 1]


def test_every_file_is_tried() -> None:
    assert STOCK.keys() == {*TRAINED, *REFUSED}


def test_the_documents_state_the_share() -> None:
    share = f"f {len(STOCK)} YAML files after its documentation, {len(TRAINED)} train unchanged"
    for name in ("README.md", "docs/opennmt.md", "docs/architecture.md"):
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert share in text, name


def write_text(path: Path, upper: bool) -> None:
    """Write sixty lines of words of letters, the same for all files, in lower or upper case."""
    generator = random.Random(5)
    words = ["".join(generator.choices("abcdefgh", k=3)) for _ in range(30)]
    lines = [" ".join(generator.choices(words, k=generator.randint(2, 5))) for _ in range(60)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line.upper() if upper else line}\n" for line in lines))


@pytest.fixture(scope="module")
def subwords(tmp_path_factory) -> dict[str, Path]:
    """Subword models by kind."""
    sentencepiece = pytest.importorskip("sentencepiece")
    pyonmttok = pytest.importorskip("pyonmttok")
    folder = tmp_path_factory.mktemp("subwords")
    write_text(folder / "lower", False)
    write_text(folder / "upper", True)
    (folder / "text").write_text((folder / "lower").read_text() + (folder / "upper").read_text())
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "sp"), vocab_size=60, minloglevel=2
    )
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("aggressive"), symbols=20)
    learner.ingest_file(str(folder / "text"))
    learner.learn(str(folder / "bpe"))
    return {"sentencepiece": folder / "sp.model", "bpe": folder / "bpe"}


def write_inputs(name: str, folder: Path, subwords: dict[str, Path]) -> dict[str, Any]:
    """Write all files that a YAML file names; return its content."""
    config = yaml.safe_load(STOCK[name].read_text(encoding="utf-8"))
    for corpus in config["data"].values():
        for key in {"path_src", "path_tgt", "path_align"} & corpus.keys():
            write_text(folder / corpus[key], key == "path_tgt")
    for key in {"src_subword_model", "tgt_subword_model"} & config.keys():
        path = folder / config[key]
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(subwords[config.get("src_subword_type", "sentencepiece")], path)
    if config.get("both_embeddings"):
        path = folder / config["both_embeddings"]
        path.parent.mkdir()
        words = dict.fromkeys((folder / "data" / "src-train.txt").read_text().split())
        path.write_text("".join(f"{word}{' 0.5' * 16}\n" for word in words))
    return config


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart", "transformer"])
def test_it_trains_in_full_size(tmp_path, subwords, name) -> None:
    write_inputs(name, tmp_path, subwords)
    succeed("train.py", "-config", STOCK[name], "-train_steps", 4, cwd=tmp_path)


@pytest.mark.parametrize("name", TRAINED)
def test_it_trains_unchanged_and_its_model_translates(tmp_path, subwords, name) -> None:
    config = write_inputs(name, tmp_path, subwords)
    small = SMALL + TRANSFORMER * (config.get("encoder_type") == "transformer")
    said = succeed("train.py", "-config", STOCK[name], *FEW, *small, cwd=tmp_path)
    assert TRAINED[name] in said
    on_cpu = bool(config.get("gpu_ranks") or config.get("gpu_ranks") == 0)
    warned = "warning: gpu_ranks 0: no GPU here; running on the CPU" in said
    assert warned == (on_cpu and not torch.cuda.is_available())
    assert "finished at step 5 (train_steps)" in said
    assert (tmp_path / config["src_vocab"]).is_file()
    source = config["data"].get("valid", config["data"].get("corpus_1"))["path_src"]
    files = ["-model", config["save_model"], "-src", source, "-output", "out"]
    flags = ["-gpu", 0, "-verbose", "-max_length", 8, "-beam_size", 2]
    succeed("translate.py", *files, *flags, cwd=tmp_path)
    assert len((tmp_path / "out").read_text().splitlines()) == 60


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_to_do(tmp_path, subwords, name) -> None:
    config = write_inputs(name, tmp_path, subwords)
    if "train_from" in config:
        (tmp_path / config["train_from"]).parent.mkdir(exist_ok=True)
        (tmp_path / config["train_from"]).write_bytes(b"a pickle")
    assert REFUSED[name] in fail("train.py", "-config", STOCK[name], cwd=tmp_path)
    assert not (tmp_path / config["save_model"]).exists()
