"""Validations compare the text of an output with the text of its reference, not their tokens."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import sentencepiece
import torch
import yaml

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.development import Development
from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.search import SearchConfig
from onmt_entmax.train.evaluation import make_evaluate
from tests.subword_models import TEXTS, write_subword_config
from tests.toy import DEVELOPMENT_PAIRS, write_config
from tests.train.stub_searches import stub_search

# --- the texts of outputs ---

SPECIAL_PIECES = 3  # <unk>, <s> and </s>, which come first in a model of SentencePiece


def write_pieces(model: Path, path: Path) -> None:
    """Write a vocabulary of the pieces of a model of SentencePiece, without the special ones."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    names = [pieces.id_to_piece(number) for number in range(SPECIAL_PIECES, len(pieces))]
    path.write_text("\n".join(names), encoding="utf-8")


def letters_of(text: str) -> list[str]:
    """Return the pieces of a text that are single letters; SentencePiece writes ▁ for a space."""
    return [*f"▁{text.replace(' ', '▁')}"]


@torch.no_grad()
def test_an_output_is_right_if_its_text_is_whatever_its_pieces_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """References are in longer pieces, and outputs in single letters.

    The development set repeats four texts. The search finds three of them, and a wrong one.
    """
    path = write_subword_config(tmp_path, "sentencepiece", selection="exact_match")
    write_pieces(tmp_path / "subwords", tmp_path / "vocabulary")
    setup = training_setup(["-config", str(path), "-tgt_vocab", str(tmp_path / "vocabulary")])
    data = TrainingData.read(setup.data, setup.vocabulary)
    found = [TEXTS[0], "the man", TEXTS[2], TEXTS[3]]
    assert data.development_set().targets[0] != letters_of(found[0])

    def find(batch: Batch, _: SearchConfig) -> list[Sequence[int]]:
        texts = [found[index % len(found)] for index in batch.indices]
        return [data.vocabularies.target.encode(letters_of(text)) for text in texts]

    stub_search(monkeypatch, find)
    model = build_model(setup.model, data.vocabularies).eval()
    measures = make_evaluate(data, setup.validation)(model)
    assert measures["exact_match"] == 100 * 3 / 4


# --- the texts of references ---


def read_development_set(config: Path) -> Development:
    """Return the development set of a training.

    Args:
        config: the YAML file of the training.
    """
    setup = training_setup(["-config", str(config)])
    return TrainingData.read(setup.data, setup.vocabulary).development_set()


def texts_of_targets(development: Development) -> list[str]:
    """Return the texts that validations would make of outputs with the tokens of the targets."""
    return [development.reader.postprocess(target) for target in development.targets]


def set_for_each_corpus(config: Path, **options: str) -> None:
    """Add options to each corpus of a training, the development set included."""
    settings = yaml.safe_load(config.read_text())
    for corpus in settings["data"].values():
        corpus |= options
    config.write_text(yaml.safe_dump(settings))


@pytest.mark.parametrize("order", [("prefix", "sentencepiece"), ("sentencepiece", "prefix")])
def test_a_target_prefix_is_part_of_the_text(tmp_path: Path, order: tuple[str, str]) -> None:
    """Outputs begin with it, and so do references, whichever transform comes first."""
    path = write_subword_config(tmp_path, "sentencepiece", transforms=list(order), selection="bleu")
    set_for_each_corpus(path, src_prefix="s", tgt_prefix="home")
    development = read_development_set(path)
    assert development.texts[0] == f"home {TEXTS[0]}"
    assert texts_of_targets(development) == development.texts


@pytest.mark.usefixtures("pyonmttok")
def test_targets_of_two_subword_transforms_come_back_as_their_text(tmp_path: Path) -> None:
    """The tokeniser's joiners are undone after the pieces of SentencePiece, which divide them."""
    joiners = "{'mode': 'aggressive', 'joiner_annotate': True}"
    path = write_subword_config(
        tmp_path,
        "sentencepiece",
        transforms=["onmt_tokenize", "sentencepiece"],
        src_onmttok_kwargs=joiners,
        tgt_onmttok_kwargs=joiners,
    )
    development = read_development_set(path)
    assert any("▁" in target for target in development.targets)
    assert texts_of_targets(development) == development.texts


@pytest.mark.usefixtures("pyonmttok")
def test_a_warning_counts_the_targets_that_transforms_change(tmp_path: Path) -> None:
    """Without joiners, the tokens of `a-b` are those of `a - b`."""
    without_joiners = "{'mode': 'aggressive'}"
    path = write_config(
        tmp_path,
        selection="bleu",
        transforms=["onmt_tokenize"],
        src_onmttok_kwargs=without_joiners,
        tgt_onmttok_kwargs=without_joiners,
    )
    changed = 3
    targets = ["a-b"] * changed + ["a b"] * (DEVELOPMENT_PAIRS - changed)
    (tmp_path / "valid.tgt").write_text("".join(f"{target}\n" for target in targets))
    setup = training_setup(["-config", str(path)])
    data = TrainingData.read(setup.data, setup.vocabulary)
    warnings: list[str] = []
    make_evaluate(data, setup.validation, warnings.append)
    counted = f"{changed} of {DEVELOPMENT_PAIRS} targets come back from transforms and truncation"
    assert any(f"{counted} as other texts, such as 'a-b' as 'a - b'" in text for text in warnings)
