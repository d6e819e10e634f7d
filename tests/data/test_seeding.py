"""Sampled subwords depend on the seed alone, and only training samples them."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from onmt_entmax.data.corpus import CorpusConfig, DataConfig, all_pairs, read_pairs
from onmt_entmax.data.stream import Position, TrainingBatches
from onmt_entmax.data.transforms import has_unseeded_sampling
from onmt_entmax.data.vocabulary import VocabularyConfig, build_vocabularies, count_tokens

TEXT = "abcabc cabcab bacbac aabbcc abc bca\n"


def corpus(folder: Path, transform: str, **options: object) -> DataConfig:
    """Return a corpus of sixty equal lines; the subword model is `model` in the folder."""
    for side in ("src", "tgt"):
        (folder / f"text.{side}").write_text(TEXT * 60)
    pair = CorpusConfig("corpus_1", str(folder / "text.src"), str(folder / "text.tgt"))
    model = {f"{side}_subword_model": str(folder / "model") for side in ("src", "tgt")}
    no_vocabulary = {"src_subword_vocab": "", "tgt_subword_vocab": "", "share_vocab": False}
    thresholds = {"src_vocab_threshold": 0, "tgt_vocab_threshold": 0}
    options = model | no_vocabulary | thresholds | options
    corpora = (replace(pair, transforms=(transform,)),)
    return DataConfig(corpora, None, batch_size=8, bucket_size=25, transform_options=options)


@pytest.fixture
def dropout(tmp_path: Path) -> DataConfig:
    """BPE of pyonmttok with dropout 0.3."""
    pyonmttok = pytest.importorskip("pyonmttok")
    (tmp_path / "bpe.text").write_text(TEXT * 50)
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("space"), symbols=6)
    learner.ingest_file(str(tmp_path / "bpe.text"))
    learner.learn(str(tmp_path / "model"))
    words = "{'mode': 'space', 'joiner_annotate': True}"
    sides = [{f"{side}_subword_type": "bpe", f"{side}_subword_alpha": 0.3,
              f"{side}_subword_nbest": 1, f"{side}_onmttok_kwargs": words}
             for side in ("src", "tgt")]  # fmt: skip
    return corpus(tmp_path, "onmt_tokenize", **sides[0], **sides[1])


def some_batches(config: DataConfig, start: Position, number: int) -> list[list[list[int]]]:
    whole = TrainingBatches(
        config, build_vocabularies(VocabularyConfig(), lambda: count_tokens(all_pairs(config)))[0]
    )
    whole.position = start
    batches = iter(whole)
    found = [batch.source[:, :, 0].tolist() for batch in islice(batches, number)]
    batches.close()
    return found


def test_merges_are_left_out_by_the_seed_whoever_reads_from_wherever(dropout: DataConfig) -> None:
    vocabularies = build_vocabularies(VocabularyConfig(), lambda: count_tokens(all_pairs(dropout)))[
        0
    ]
    whole = TrainingBatches(dropout, vocabularies)
    expected, middle = [], Position()
    for batch in islice(whole, 20):
        expected.append(batch.source[:, :, 0].tolist())
        middle = whole.position if len(expected) == 7 else middle
    assert len({str(batch) for batch in expected}) == 20, "nothing was left out"
    assert some_batches(dropout, middle, 13) == expected[7:]
    assert some_batches(replace(dropout, num_workers=2), Position(), 20) == expected
    assert some_batches(replace(dropout, seed=5), Position(), 20) != expected


def test_merges_are_left_out_in_training_alone(dropout: DataConfig) -> None:
    counted = list(all_pairs(dropout))
    assert counted == list(all_pairs(dropout))
    assert len({tuple(source) for source, _ in counted}) > 5
    plain = list(read_pairs(dropout.corpora[0], dropout, is_train=False))
    assert len({tuple(side) for pair in plain for side in pair}) == 1


def test_sampled_subwords_depend_on_the_seed_alone(tmp_path: Path) -> None:
    """In one process."""
    pieces = pytest.importorskip("sentencepiece")
    (tmp_path / "sp.text").write_text(TEXT * 50)
    pieces.SentencePieceTrainer.train(
        input=str(tmp_path / "sp.text"), model_prefix=str(tmp_path / "sp"), vocab_size=14,
        minloglevel=2,
    )  # fmt: skip
    (tmp_path / "sp.model").rename(tmp_path / "model")
    options = {"src_subword_nbest": -1, "tgt_subword_nbest": -1,
               "src_subword_alpha": 0.1, "tgt_subword_alpha": 0.1}  # fmt: skip
    config = corpus(tmp_path, "sentencepiece", **options)
    first, second = list(all_pairs(config)), list(all_pairs(config))
    assert first == second
    assert len({tuple(source) for source, _ in first}) > 5, "nothing was sampled"
    assert has_unseeded_sampling(["sentencepiece"], options)
    assert not has_unseeded_sampling(["sentencepiece"], dict.fromkeys(options, 1))
    assert not has_unseeded_sampling(["bpe"], options)
