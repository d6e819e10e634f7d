"""`Reader`: texts to tokens and ids, and tokens of outputs to text."""

from argparse import Namespace
from typing import Any

import pytest

from onmt_entmax.data.reader import Reader
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary

VOCABULARIES = Vocabularies(
    Vocabulary(("<blank>", "<unk>", "a", "b")),
    Vocabulary(("<blank>", "<unk>", "<s>", "</s>", "b", "a")),
)


def reader_with(name: str, **options: object) -> Reader:
    """Return a reader with one transform.

    Args:
        name: name of the transform.
        options: options of the transform.
    """
    return Reader(VOCABULARIES, build_transforms([name], Namespace(**options), VOCABULARIES))


# --- without transforms ----------------------------------------------------------------------


@pytest.fixture
def plain() -> Reader:
    """A reader without transforms."""
    return Reader(VOCABULARIES)


def test_tokens_of_a_text_are_between_spaces(plain: Reader) -> None:
    assert plain.preprocess("a  b", " b") == (["a", "b"], ["b"])


def test_a_text_of_spaces_has_no_tokens(plain: Reader) -> None:
    assert plain.preprocess("  ") == ([], [])


def test_an_output_has_a_space_between_tokens(plain: Reader) -> None:
    assert plain.postprocess(["a", "b"]) == "a b"


def test_outputs_cannot_become_the_same_text_without_transforms(plain: Reader) -> None:
    assert not plain.can_merge_outputs


def test_a_source_has_the_ids_of_its_tokens(plain: Reader) -> None:
    """An unknown token, such as ж, has the id of `<unk>`."""
    assert plain.encode(["a", "ж", "b"]).example.source == [2, 1, 3]


def test_a_source_keeps_its_words(plain: Reader) -> None:
    assert plain.encode(["a", "ж", "b"]).words == ("a", "ж", "b")


def test_an_example_has_the_index_that_the_caller_gives(plain: Reader) -> None:
    assert plain.encode(["a"], index=7).example.index == 7


def test_an_example_of_a_source_has_no_target(plain: Reader) -> None:
    assert plain.encode(["a"]).example.target is None


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        pytest.param(["a", "ж", "b"], ("ж",), id="not in the vocabulary"),
        pytest.param(["a", "<unk>"], (), id="written as unknown"),
    ],
)
def test_a_source_has_its_unknown_words(
    plain: Reader, words: list[str], unknown: tuple[str, ...]
) -> None:
    assert plain.encode(words).unknown == unknown


# --- with transforms -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "tokens"),
    [
        pytest.param("a", (["a"], ["b"]), id="short enough"),
        pytest.param("a b", ([], []), id="too long"),
    ],
)
def test_transforms_may_drop_a_pair(source: str, tokens: tuple[list[str], list[str]]) -> None:
    dropping = reader_with("filtertoolong", src_seq_length=1, tgt_seq_length=1)
    assert dropping.preprocess(source, "b") == tokens


@pytest.fixture
def joining(pyonmttok: Any) -> Reader:
    """A reader whose tokeniser marks tokens that stood next to others."""
    return reader_with(
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


def test_transforms_divide_a_text(joining: Reader) -> None:
    assert joining.preprocess("a-b") == (["a", "￭-￭", "b"], [])


def test_transforms_are_undone_on_outputs(joining: Reader) -> None:
    assert joining.postprocess(["a", "￭-￭", "b"]) == "a-b"


def test_outputs_may_become_the_same_text_when_transforms_are_undone(joining: Reader) -> None:
    assert joining.can_merge_outputs
