"""Unknown words of outputs are replaced by source words, or by their entries in a phrase table."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.data.phrase_table import read_phrase_table, replace_unknown
from onmt_entmax.errors import UserError


@pytest.mark.parametrize(
    ("tokens", "replaced"),
    [
        (["<unk>", "<unk>", "<unk>"], ["yard", "Haus", "Tür"]),
        (["a", "<unk>"], ["a", "Haus"]),
        ([], []),
    ],
)
def test_each_unknown_token_becomes_the_most_attended_word(
    tokens: list[str], replaced: list[str]
) -> None:
    """Hof is in the phrase table; the others are copied."""
    attention = torch.tensor([[0.1, 0.9, 0.0, 0.0], [0.5, 0.0, 0.2, 0.3], [0.0, 0.0, 0.2, 9.0]])
    source = ["Haus", "Hof", "Tür"]  # the fourth column is padding
    assert replace_unknown(tokens, source, attention, {"Hof": "yard"}) == replaced


def test_a_phrase_table_has_the_first_word_for_a_source_word(tmp_path: Path) -> None:
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
    with pytest.raises(UserError, match=message.replace("|", r"\|")):
        read_phrase_table(path)


def test_a_missing_phrase_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_phrase_table(tmp_path / "missing")
