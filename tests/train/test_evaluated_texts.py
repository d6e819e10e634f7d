"""Validation of models of subwords: what is compared is text, not tokens."""

from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.data.training import TrainingData
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.evaluation import make_evaluate
from tests.subword_models import TEXTS, learn_sentencepiece, write_subword_config
from tests.toy import write_config
from tests.train.stub_searches import stub_search


def write_pieces(model: Path, path: Path) -> None:
    """Write a vocabulary of all pieces of a model of SentencePiece."""
    pieces = learn_sentencepiece(model)
    special = 3  # <unk>, <s> and </s>
    names = [pieces.id_to_piece(number) for number in range(special, len(pieces))]
    path.write_text("\n".join(names), encoding="utf-8")


def letters_of(text: str) -> list[str]:
    """Return pieces of single letters that write a text."""
    return [*f"▁{text.replace(' ', '▁')}"]


def test_accuracy_is_that_of_the_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model may write them in other pieces than the targets have: here, in single letters.

    The search finds one wrong text for four sentences.
    """
    path = write_subword_config(tmp_path, "sentencepiece", selection="exact_match")
    write_pieces(tmp_path / "subwords", tmp_path / "vocabulary")
    setup = training_setup(["-config", str(path), "-tgt_vocab", str(tmp_path / "vocabulary")])
    data = TrainingData.read(setup.data, setup.vocabulary)
    # The development set repeats `TEXTS`.
    outputs = [letters_of(text) for text in [TEXTS[0], "the man", *TEXTS[2:]]]
    assert data.development_set().targets[0] != outputs[0]
    encode = data.vocabularies.target.encode
    stub_search(
        monkeypatch,
        lambda batch, _: [encode(outputs[index % len(outputs)]) for index in batch.indices],
    )
    evaluate = make_evaluate(data, setup.validation)
    with torch.no_grad():
        values = evaluate(build_model(setup.model, data.vocabularies).eval())
    assert values["exact_match"] == 75


@pytest.mark.usefixtures("pyonmttok")
def test_a_warning_counts_the_targets_that_transforms_change(tmp_path: Path) -> None:
    """Without joiners, the tokens of `a-b` are those of `a - b`."""
    lossy = {f"{side}_onmttok_kwargs": "{'mode': 'aggressive'}" for side in ("src", "tgt")}
    path = write_config(tmp_path, selection="bleu", transforms=["onmt_tokenize"], **lossy)
    (tmp_path / "valid.tgt").write_text("a-b\n" * 3 + "a b\n" * 37)
    setup = training_setup(["-config", str(path)])
    warnings: list[str] = []
    make_evaluate(
        TrainingData.read(setup.data, setup.vocabulary), setup.validation, warnings.append
    )
    message = "3 of 40 targets come back from transforms and truncation as other texts, such as "
    assert any(f"{message}'a-b' as 'a - b'" in warning for warning in warnings)


@pytest.mark.parametrize("order", [("prefix", "sentencepiece"), ("sentencepiece", "prefix")])
def test_a_target_prefix_is_part_of_the_text(tmp_path: Path, order: tuple[str, str]) -> None:
    """Outputs begin with it, so references do, whichever transform comes first."""
    path = write_subword_config(tmp_path, "sentencepiece", transforms=list(order), selection="bleu")
    settings = yaml.safe_load(path.read_text())
    for corpus in settings["data"].values():
        corpus |= {"src_prefix": "s", "tgt_prefix": "home"}
    path.write_text(yaml.safe_dump(settings))
    setup = training_setup(["-config", str(path)])
    development = TrainingData.read(setup.data, setup.vocabulary).development_set()
    assert development.texts[0] == f"home {TEXTS[0]}"
    assert [*map(development.reader.postprocess, development.targets)] == development.texts
