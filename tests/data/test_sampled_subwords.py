"""BPE of pyonmttok with dropout: the seed decides which merges are left out, in every process."""

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from onmt_entmax.config import DataConfig
from onmt_entmax.data.batch import Batch
from tests.data.corpora import data_config, equal_batches, pairs_of, stream, write_corpus

TEXT = "abcabc cabcab bacbac aabbcc abc bca"
LINES = 60  # all of them are this text
BATCHES = 20


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, pyonmttok: Any) -> DataConfig:
    """A corpus of equal lines, which a model of six merges divides; each is left out at times."""
    folder = tmp_path_factory.mktemp("subwords")
    (folder / "bpe.text").write_text(f"{TEXT}\n" * 50)
    learner = pyonmttok.BPELearner(tokenizer=pyonmttok.Tokenizer("space"), symbols=6)
    learner.ingest_file(str(folder / "bpe.text"))
    learner.learn(str(folder / "model"))
    options: dict[str, object] = {"share_vocab": False}
    for side in ("src", "tgt"):
        options |= {
            f"{side}_subword_model": str(folder / "model"),
            f"{side}_subword_type": "bpe",
            f"{side}_subword_alpha": 0.3,
            f"{side}_subword_nbest": 1,
            f"{side}_subword_vocab": "",
            f"{side}_vocab_threshold": 0,
            f"{side}_onmttok_kwargs": "{'mode': 'space', 'joiner_annotate': True}",
        }
    lines = [TEXT] * LINES
    text = write_corpus(folder, "text", lines, lines, transforms=("onmt_tokenize",))
    return data_config(text, bucket_size=25, transform_options=options)


@pytest.fixture(scope="module")
def batches(config: DataConfig) -> list[Batch]:
    return list(islice(stream(config), BATCHES))


def test_batches_of_equal_lines_differ(batches: list[Batch]) -> None:
    assert len({str(batch.source.tolist()) for batch in batches}) == BATCHES


def test_batches_are_the_same_from_a_position_on(config: DataConfig, batches: list[Batch]) -> None:
    beginning = stream(config)
    list(islice(beginning, 7))
    rest = islice(stream(config, beginning.position), BATCHES - 7)
    for batch, expected in zip(rest, batches[7:], strict=True):
        assert equal_batches(batch, expected)


def test_batches_are_the_same_in_other_processes(config: DataConfig, batches: list[Batch]) -> None:
    prefetched = islice(stream(config, workers=2), BATCHES)
    for batch, expected in zip(prefetched, batches, strict=True):
        assert equal_batches(batch, expected)


def test_batches_differ_for_another_seed(config: DataConfig, batches: list[Batch]) -> None:
    other = islice(stream(replace(config, seed=5)), BATCHES)
    assert not all(map(equal_batches, other, batches))


def test_nothing_is_sampled_for_validation(config: DataConfig) -> None:
    (corpus,) = config.corpora
    pairs = pairs_of(corpus, is_train=False, transform_options=config.transform_options)
    assert pairs == [pairs[0]] * LINES
