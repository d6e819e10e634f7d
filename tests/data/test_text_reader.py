"""Reader: text to tokens and back, and the replacement of unknown words."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from onmt_entmax.data.phrase_table import read_phrase_table, replace_unknown
from onmt_entmax.data.reader import Reader
from onmt_entmax.data.transforms import Pipe, build_transforms
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import Transform

VOCABULARIES = Vocabularies(
    Vocabulary(("<blank>", "<unk>", "a", "b")),
    Vocabulary(("<blank>", "<unk>", "<s>", "</s>", "b", "a")),
)


def piped(name: str, **options: object) -> Reader:
    """Return a reader with one transform."""
    return Reader(VOCABULARIES, build_transforms([name], Namespace(**options), VOCABULARIES))


def test_without_transforms_texts_are_tokens_between_spaces() -> None:
    reader = Reader(VOCABULARIES)
    assert reader.preprocess("a  b", " b") == (["a", "b"], ["b"])
    assert reader.preprocess("  ") == ([], [])
    assert reader.postprocess(["a", "b"]) == "a b"
    assert not reader.merges


def test_a_question_has_ids_and_unknown_tokens() -> None:
    question = Reader(VOCABULARIES).encode(["a", "ж", "b"], 7)
    assert question.words == ("a", "ж", "b")
    assert list(question.example.source) == [2, 1, 3]
    assert (question.example.index, question.example.target) == (7, None)
    assert question.unknown == ("ж",)
    assert Reader(VOCABULARIES).encode(["a", "<unk>"]).unknown == ()


def test_transforms_may_drop_a_pair() -> None:
    dropping = piped("filtertoolong", src_seq_length=1, tgt_seq_length=1)
    assert dropping.preprocess("a", "b") == (["a"], ["b"])
    assert dropping.preprocess("a b", "b") == ([], [])


class Emptying(Transform):
    """Leaves nothing of a target."""

    def apply(self, pair: dict[str, Any], *_: object, **more: object) -> dict[str, Any]:
        return {**pair, "tgt": []}


def test_a_pair_with_an_empty_side_is_dropped_where_both_are_needed() -> None:
    pipe = Pipe.build_from([Emptying(Namespace(seed=-1))])
    assert pipe.tokens("a", "b", "train", is_train=True, both=True) is None
    assert pipe.tokens("a", "b", "translate") == (["a"], [])


@pytest.mark.usefixtures("pyonmttok")
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


def test_each_unknown_token_becomes_the_most_attended_word() -> None:
    attention = torch.tensor([[0.1, 0.9, 0.0, 0.0], [0.5, 0.0, 0.2, 0.3], [0.0, 0.0, 0.2, 9.0]])
    source = ["Haus", "Hof", "Tür"]  # the fourth column is padding
    for tokens, replaced in (
        (["<unk>", "<unk>", "<unk>"], ["yard", "Haus", "Tür"]),
        (["a", "<unk>"], ["a", "Haus"]),
        ([], []),
    ):
        assert replace_unknown(tokens, source, attention, {"Hof": "yard"}) == replaced


def test_a_phrase_table(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("Haus|||house\nHaus|||home\n Tür ||| door ||| 0.7\n", encoding="utf-8")
    assert read_phrase_table(path) == {"Haus": "house", "Tür": "door"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"a|||b\nno bars\n", "line 2 is not `source|||target`", id="no bars"),
        pytest.param(b"|||b\n", "line 1", id="no source"),
        pytest.param(b"a|||\n", "line 1", id="no target"),
        pytest.param(b"\xff|||b\n", "not UTF-8", id="another encoding"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message.replace("|", r"\|")):
        read_phrase_table(path)
    with pytest.raises(UserError, match="No such file"):
        read_phrase_table(tmp_path / "missing")
