"""Subword models of four short texts, and trainings with them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece

from tests.toy import write_config

TEXTS = [
    "the woman walks home",
    "a man, walking",
    "home, the dog barks",
    "the man runs !",
]

Options = dict[str, object]
"""Options of a training."""

_LEARNED_TEXTS = TEXTS * 20  # repeated, since learners pass over what is rare
_LARGEST_VOCABULARY = 60  # pieces of SentencePiece, which may find fewer
_MERGES = 12  # of subword-nmt, so few that some words stay divided


def learn_sentencepiece(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Learn a model of SentencePiece from the texts, write it, and return it."""
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(_LEARNED_TEXTS),
            model_writer=file,
            vocab_size=_LARGEST_VOCABULARY,
            hard_vocab_limit=False,
            minloglevel=2,  # errors only
            normalization_rule_name="identity",
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def _sentencepiece(path: Path) -> Options:
    """Learn a model for the transform `sentencepiece`."""
    learn_sentencepiece(path)
    return {"transforms": ["sentencepiece"]}


def _subword_nmt(path: Path) -> Options:
    """Learn merges of subword-nmt for the transform `bpe`."""
    learner = pytest.importorskip("subword_nmt.learn_bpe")
    with open(path, "w", encoding="utf-8") as file:
        learner.learn_bpe(_LEARNED_TEXTS, file, _MERGES, num_workers=1)
    return {"transforms": ["bpe"]}


def _onmt_tokenize(path: Path, **tokeniser: object) -> Options:
    """Learn a model of SentencePiece for the transform `onmt_tokenize`.

    Args:
        path: path of the model.
        tokeniser: options of pyonmttok's tokeniser.
    """
    pytest.importorskip("pyonmttok")
    learn_sentencepiece(path)
    options: Options = {"transforms": ["onmt_tokenize"]}
    for side in ("src", "tgt"):
        options[f"{side}_subword_type"] = "sentencepiece"
        options[f"{side}_onmttok_kwargs"] = str(tokeniser)
    return options


def _spacers(path: Path) -> Options:
    """Learn a model for a tokeniser that marks spaces before words by ▁."""
    return _onmt_tokenize(path, mode="none")


def _joiners(path: Path) -> Options:
    """Learn a model for a tokeniser that marks tokens which no space divides by ￭."""
    return _onmt_tokenize(path, mode="aggressive", joiner_annotate=True, no_substitution=True)


KINDS: dict[str, Callable[[Path], Options]] = {
    "sentencepiece": _sentencepiece,
    "bpe": _subword_nmt,
    "onmt_tokenize-spacers": _spacers,
    "onmt_tokenize-joiners": _joiners,
}
"""Functions that write a subword model to a path, and return the options of a training with it."""


def write_subword_config(folder: Path, kind: str, **changes: object) -> Path:
    """Write text, a subword model and the YAML file of a training; return the file's path.

    Args:
        folder: folder for all files; the model of both sides is `subwords`.
        kind: one of `KINDS`.
        changes: options of the training.
    """
    model = folder / "subwords"
    options = KINDS[kind](model) | {
        "src_subword_model": str(model),
        "tgt_subword_model": str(model),
        "train_steps": 100,  # enough to learn the four texts by heart, at this learning rate
        "learning_rate": 0.03,
        "valid_steps": 100,
        "save_checkpoint_steps": 100,
        "dropout": 0.0,
        "batch_size": 8,
        "generator_function": "softmax",
    }
    path = write_config(folder, **(options | changes))
    for name, repetitions in (("train", 40), ("valid", 3)):
        text = "".join(f"{line}\n" for line in TEXTS * repetitions)
        for side in ("src", "tgt"):
            (folder / f"{name}.{side}").write_text(text)
    return path
