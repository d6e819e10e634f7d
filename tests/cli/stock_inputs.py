"""Files that the YAML files of `tests/stock` name: texts, subword models and word vectors."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.options.recorded import transforms_of

LINES = 60  # of every text
SIZE = 16  # numbers in a word vector


def write_text(path: Path, upper: bool = False) -> None:
    """Write the same lines of random words to every file, in lower or upper case."""
    generator = random.Random(5)
    words = ["".join(generator.choices("abcdefgh", k=3)) for _ in range(30)]
    lines = [" ".join(generator.choices(words, k=generator.randint(2, 5))) for _ in range(LINES)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line.upper() if upper else line}\n" for line in lines))


def learn_sentencepiece(path: Path, texts: Sequence[Path]) -> None:
    """Learn a model of 60 pieces."""
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.train(
        input=list(map(str, texts)),
        model_prefix=str(path.with_suffix("")),
        vocab_size=60,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)


def learn_bpe(path: Path, texts: Sequence[Path]) -> None:
    """Learn a model of 20 merges."""
    pyonmttok = pytest.importorskip("pyonmttok")
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("aggressive"), symbols=20)
    for text in texts:
        learner.ingest_file(str(text))
    learner.learn(str(path))


def write_subwords(folder: Path, config: Mapping[str, Any], texts: Sequence[Path]) -> None:
    """Learn the subword models that a YAML file names, each from all texts.

    Args:
        folder: paths of the YAML file are relative to it.
        config: the content of the YAML file.
        texts: texts of both languages.
    """
    kind = config.get("src_subword_type", "sentencepiece")
    learn = {"sentencepiece": learn_sentencepiece, "bpe": learn_bpe}[kind]
    names = [config[key] for key in ("src_subword_model", "tgt_subword_model") if key in config]
    for name in dict.fromkeys(names):  # both sides may share a model
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        learn(folder / name, texts)


def write_embeddings(path: Path, texts: Sequence[Path]) -> None:
    """Write the same vector for every word of the texts."""
    path.parent.mkdir()
    words = dict.fromkeys(word for text in texts for word in text.read_text().split())
    path.write_text("".join(f"{word}{' 0.5' * SIZE}\n" for word in words))


def write_inputs(path: Path, folder: Path) -> dict[str, Any]:
    """Write all files that a YAML file names; skip the test if a library is not installed.

    Args:
        path: path of the YAML file.
        folder: paths of the YAML file are relative to it.

    Returns:
        The content of the YAML file.
    """
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    if "onmt_tokenize" in transforms_of(config):
        pytest.importorskip("pyonmttok")
    texts = []
    for corpus in config["data"].values():
        for key in ("path_src", "path_tgt", "path_align"):
            if key in corpus:
                texts.append(folder / corpus[key])
                write_text(texts[-1], upper=key == "path_tgt")
    write_subwords(folder, config, texts)
    if config.get("both_embeddings"):
        write_embeddings(folder / config["both_embeddings"], texts)
    return config
