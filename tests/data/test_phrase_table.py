"""Phrase tables are read, and unknown tokens of outputs are replaced with their help."""

import re
from pathlib import Path

import pytest
import torch

from onmt_entmax.data.phrase_table import read_phrase_table, replace_unknown
from onmt_entmax.errors import UserError

SOURCE = ["Haus", "Hof", "Tür"]
# Weights of the source's words and of a column of padding, for up to three target tokens.
ATTENTION = torch.tensor([[0.1, 0.9, 0.0, 0.0], [0.5, 0.0, 0.2, 0.3], [0.0, 0.0, 0.4, 0.6]])


@pytest.mark.parametrize(
    ("tokens", "replaced"),
    [
        pytest.param(["<unk>"], ["yard"], id="translated by the table"),
        pytest.param(["a", "<unk>"], ["a", "Haus"], id="copied, since the table lacks it"),
        pytest.param(["a", "b", "<unk>"], ["a", "b", "Tür"], id="padding has the most attention"),
        pytest.param(["<unk>", "<unk>", "<unk>"], ["yard", "Haus", "Tür"], id="several"),
        pytest.param([], [], id="empty output"),
    ],
)
def test_an_unknown_token_becomes_its_most_attended_source_word_or_a_translation_of_it(
    tokens: list[str], replaced: list[str]
) -> None:
    assert replace_unknown(tokens, SOURCE, ATTENTION, {"Hof": "yard"}) == replaced


def test_the_first_target_of_a_source_word_counts(tmp_path: Path) -> None:
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
def test_a_malformed_phrase_table_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(message)):
        read_phrase_table(path)


def test_a_missing_phrase_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_phrase_table(tmp_path / "missing")
