"""Training data: pairs of lines, errors, and what the data says of languages and vocabularies."""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.data import numbered, training
from onmt_entmax.data.corpus import CorpusError, count_pairs
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, pairs_of, write_corpus

# --- lines -----------------------------------------------------------------------------------


def test_a_pair_is_a_line_of_each_side(tmp_path: Path) -> None:
    _, second, _ = pairs_of(numbered_corpus(tmp_path, size=3))
    assert second == (["corpus_1", "a", "b", "1"], ["CORPUS_1", "A", "B", "1"])


def test_each_side_has_its_own_prefix_and_its_own_length(tmp_path: Path) -> None:
    plain = numbered_corpus(tmp_path, size=3)
    prefixed = replace(plain, transforms=("prefix",), src_prefix="s", tgt_prefix="t")
    *_, third = pairs_of(prefixed, src_seq_length_trunc=3, tgt_seq_length_trunc=2)
    assert third == (["s", "corpus_1", "a"], ["t", "CORPUS_1"])


@pytest.fixture
def half_empty(tmp_path: Path) -> CorpusConfig:
    """A corpus of four pairs; the second has no target."""
    return write_corpus(tmp_path, "x", "abcd", ["A", "", "C", "D"])


@pytest.mark.parametrize(("level", "warnings"), [("silent", 0), ("warning", 1)])
def test_pairs_with_an_empty_side_are_left_out(
    half_empty: CorpusConfig, level: str, warnings: int, recwarn: pytest.WarningsRecorder
) -> None:
    assert len(pairs_of(half_empty, skip_empty_level=level)) == 3
    assert len(recwarn) == warnings


def test_pairs_with_an_empty_side_may_be_an_error(half_empty: CorpusConfig) -> None:
    with pytest.raises(CorpusError, match="line 2 is empty on one side"):
        pairs_of(half_empty, skip_empty_level="error")


MARK = "\ufeff"


@pytest.mark.parametrize(
    ("source", "target"),
    [([f"{MARK}a", f"{MARK}c"], ["x", f"{MARK}y"]), (["a", f"{MARK}c"], [f"{MARK}x", f"{MARK}y"])],
    ids=["in the source", "in the target"],
)
def test_a_byte_order_mark_is_no_part_of_the_first_token(
    tmp_path: Path, source: list[str], target: list[str]
) -> None:
    """At the beginning of a file; elsewhere it is text."""
    pairs = pairs_of(write_corpus(tmp_path, "x", source, target))
    assert pairs == [(["a"], ["x"]), ([f"{MARK}c"], [f"{MARK}y"])]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("abcd", "AB", "2 lines, but .* has 4"),
        ("abcd", "", "0 lines, but .* has 4"),
        ("", "", "is empty"),
    ],
)
def test_files_of_different_lengths_or_without_a_line_are_refused(
    tmp_path: Path, source: str, target: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        count_pairs(write_corpus(tmp_path, "x", source, target))


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "x", "abc", "abc")
    Path(corpus.path_src).write_bytes(b"a\n\xff\nc\n")
    with pytest.raises(UserError, match=":2: not UTF-8"):
        TrainingData(data_config(corpus), VocabularyConfig())


# --- vocabularies ----------------------------------------------------------------------------


LONG = {"src_seq_length": 5, "tgt_seq_length": 5}  # longer pairs are filtered out


class TestLanguages:
    """Of lines after filters, and the same whether or not pairs are kept in memory."""

    @pytest.fixture(params=[True, False], ids=["in memory", "from the files"], autouse=True)
    def kept(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(training, "MAX_BYTES", 1 << 30 if request.param else 0)
        monkeypatch.setattr(training, "_CHUNK", 2)
        monkeypatch.setattr(numbered, "_CHUNK", 2)

    @pytest.fixture
    def first(self, tmp_path: Path) -> CorpusConfig:
        """Two languages, one of which has a pair that is too long."""
        sources = ["lang=x +V a b", "lang=y +V c", "lang=x d", "lang=x " + "long " * 9]
        return write_corpus(tmp_path, "one", sources, "ABCD", transforms=("filtertoolong",))

    @pytest.fixture
    def second(self, tmp_path: Path) -> CorpusConfig:
        return write_corpus(tmp_path, "two", ["lang=y b a a a"], "E")

    @pytest.fixture
    def both(self, first: CorpusConfig, second: CorpusConfig) -> TrainingData:
        return TrainingData(data_config(first, second, transform_options=LONG), VocabularyConfig())

    def test_tokens_are_counted_after_filters(self, both: TrainingData) -> None:
        source, target = both.vocabularies
        assert source.tokens[2:] == ("a", "+V", "b", "lang=x", "lang=y", "c", "d")
        assert target.tokens[4:] == ("A", "B", "C", "E")

    def test_tokens_of_each_language_are_recorded(self, both: TrainingData) -> None:
        assert both.languages == {"lang=x": {"+V", *"abd"}, "lang=y": {"+V", *"abc"}}
        assert both.vocabularies.source.seen == both.languages
        assert both.vocabularies.target.seen == {"lang=x": {*"AC"}, "lang=y": {*"BE"}}

    def test_an_earlier_training_is_not_forgotten(
        self, both: TrainingData, second: CorpusConfig
    ) -> None:
        again = TrainingData(data_config(second), VocabularyConfig(), both.vocabularies)
        for side, before in zip(again.vocabularies, both.vocabularies, strict=True):
            assert side.seen == before.seen

    def test_a_corpus_without_languages_leaves_none(
        self, first: CorpusConfig, second: CorpusConfig, tmp_path: Path
    ) -> None:
        plain = write_corpus(tmp_path, "three", ["a b"], "A")
        config = data_config(first, second, plain, transform_options=LONG)
        assert TrainingData(config, VocabularyConfig()).languages == {}


class TestTargetsOfLanguages:
    """They are recorded where all trainings of a model are known.

    A model of an earlier version does not say which targets a language had before.
    """

    @pytest.fixture
    def before(self, tmp_path: Path) -> Vocabularies:
        corpus = write_corpus(tmp_path, "one", ["lang=x a", "lang=y a"], "AB")
        return TrainingData(data_config(corpus), VocabularyConfig()).vocabularies

    @pytest.fixture
    def config(self, tmp_path: Path) -> DataConfig:
        """A second training, with another language."""
        lines = ["lang=x a", "lang=y a", "lang=z a"]
        return data_config(write_corpus(tmp_path, "two", lines, "BAB"))

    def languages_with_targets(
        self, config: DataConfig, before: Vocabularies, seen: dict[str, frozenset[str]]
    ) -> set[str]:
        """Return the languages recorded after a training of an earlier version."""
        tokens = (*before.source.tokens, "lang=z")
        earlier = Vocabularies(
            replace(before.source, tokens=tokens, seen=seen), replace(before.target, seen={})
        )
        read = TrainingData(config, VocabularyConfig(), earlier)
        return {*read.vocabularies.target.seen}

    def test_of_a_new_language_if_those_before_are_known(
        self, config: DataConfig, before: Vocabularies
    ) -> None:
        seen = dict(before.source.seen)
        assert self.languages_with_targets(config, before, seen) == {"lang=z"}

    def test_of_none_if_nothing_tells_the_languages_before(
        self, config: DataConfig, before: Vocabularies
    ) -> None:
        assert self.languages_with_targets(config, before, {}) == set()

    def test_of_both_trainings(self, config: DataConfig, before: Vocabularies) -> None:
        target = TrainingData(config, VocabularyConfig(), before).vocabularies.target
        assert target.seen == {"lang=x": {*"AB"}, "lang=y": {*"AB"}}


def test_subwords_of_a_language_are_not_all_that_write_its_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SUBWORDS", {"filtertoolong"})
    lines = write_corpus(tmp_path, "one", ["lang=x a"], "A", transforms=("filtertoolong",))
    config = data_config(lines, transform_options={"src_seq_length": 9, "tgt_seq_length": 9})
    read = TrainingData(config, VocabularyConfig())
    assert read.languages
    assert read.vocabularies.target.seen == {}


def test_special_tokens_of_transforms_are_in_the_vocabulary(tmp_path: Path) -> None:
    masked = numbered_corpus(tmp_path, transforms=("tokenmask",))
    config = data_config(masked, transform_options={**TOKENDROP, "tokenmask_temperature": 1.0})
    read = TrainingData(config, VocabularyConfig())
    assert "<mask>" in read.specials[0]
    assert "<mask>" in read.vocabularies.source


NOTHING_FITS = {"src_seq_length": 0, "tgt_seq_length": 0}


def test_a_filter_that_leaves_no_pair_is_an_error(tmp_path: Path) -> None:
    corpus = numbered_corpus(tmp_path, transforms=("filtertoolong",))
    with pytest.raises(CorpusError, match="corpus 'corpus_1': no pair is left"):
        TrainingData(data_config(corpus, transform_options=NOTHING_FITS), VocabularyConfig())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_random_filter_that_leaves_no_pair_is_an_error_of_the_stream(
    tmp_path: Path, workers: int
) -> None:
    """What is random is not read before."""
    plain = TrainingData(data_config(numbered_corpus(tmp_path)), VocabularyConfig())
    corpus = numbered_corpus(tmp_path, transforms=("filtertoolong", "tokendrop"))
    config = data_config(corpus, transform_options={**NOTHING_FITS, **TOKENDROP})
    read = TrainingData(config, VocabularyConfig(), plain.vocabularies)
    batches = iter(TrainingBatches(read, workers))
    with pytest.raises(CorpusError, match="no training pair is left"):
        next(batches)
