"""From a line of text to what a model reads, and back."""

from argparse import Namespace

import pytest

from onmt_entmax.data.reader import Reader
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.data.vocabulary import COPY_SYMBOL, Vocabularies, Vocabulary
from onmt_entmax.errors import UserError

VOCABULARIES = Vocabularies(
    Vocabulary(("<blank>", "<unk>", "a", "b", COPY_SYMBOL.format(1))),
    Vocabulary(("<blank>", "<unk>", "<s>", "</s>", "b", "a", COPY_SYMBOL.format(1))),
)


def piped(name: str, **options: object) -> Reader:
    """A reader with one transform."""
    return Reader(VOCABULARIES, build_transforms([name], Namespace(**options), VOCABULARIES))


def test_without_transforms_texts_are_tokens_between_spaces() -> None:
    reader = Reader(VOCABULARIES)
    assert reader.preprocess("a  b", " b") == (["a", "b"], ["b"])
    assert reader.preprocess("  ") == ([], [])
    assert reader.postprocess(["a", "b"]) == "a b"
    assert not reader.merges


def test_a_question_has_ids_and_placeholders() -> None:
    question = Reader(VOCABULARIES).encode(["a", "ж", "unknown"], 7)
    assert question.words == ("a", "ж", "unknown")
    assert question.copied.symbols == {"ж": COPY_SYMBOL.format(1)}
    assert list(question.example.source) == [2, 4, 1]
    assert (question.example.index, question.example.target) == (7, None)


def test_transforms_may_drop_a_pair() -> None:
    dropping = piped("filtertoolong", src_seq_length=1, tgt_seq_length=1)
    assert dropping.preprocess("a", "b") == (["a"], ["b"])
    assert dropping.preprocess("a b", "b") == ([], [])


def test_transforms_are_undone_on_outputs() -> None:
    joined = piped(
        "onmt_tokenize",
        src_subword_type="none", tgt_subword_type="none",
        src_subword_model=None, tgt_subword_model=None,
        src_subword_vocab="", tgt_subword_vocab="",
        src_vocab_threshold=0, tgt_vocab_threshold=0,
        src_subword_nbest=1, tgt_subword_nbest=1,
        src_subword_alpha=0.0, tgt_subword_alpha=0.0,
        src_onmttok_kwargs={"mode": "aggressive", "joiner_annotate": True},
        tgt_onmttok_kwargs={"mode": "aggressive", "joiner_annotate": True},
        gpt2_pretok=False, share_vocab=False,
    )  # fmt: skip
    assert joined.preprocess("a-b") == (["a", "￭-￭", "b"], [])
    assert joined.postprocess(["a", "￭-￭", "b"]) == "a-b"
    assert joined.merges


def test_there_is_no_transform_of_any_other_name() -> None:
    with pytest.raises(UserError, match="no transform 'magic'"):
        piped("magic")
