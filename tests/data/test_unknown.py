"""Words in the place of unknown tokens: chosen by attention, looked up in a phrase table."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.data.reader import UnknownWords, read_phrase_table
from onmt_entmax.errors import UserError


def test_each_unknown_token_becomes_the_most_attended_word() -> None:
    attention = torch.tensor([[0.1, 0.9, 0.0, 0.0], [0.5, 0.0, 0.2, 0.3], [0.0, 0.0, 0.2, 9.0]])
    source = ["Haus", "Hof", "Tür"]  # the fourth column is padding
    words = UnknownWords({"Hof": "yard"})
    assert words.replace(["<unk>", "<unk>", "<unk>"], source, attention) == ["yard", "Haus", "Tür"]
    assert words.replace(["a", "<unk>"], source, attention) == ["a", "Haus"]
    assert words.replace([], source, attention) == []


def test_a_phrase_table(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("Haus|||house\nHaus|||home\n Tür ||| door ||| 0.7\n", encoding="utf-8")
    assert read_phrase_table(path) == {"Haus": "house", "Tür": "door"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a|||b\nno bars\n", "line 2 is not `source|||target`"),
        (b"|||b\n", "line 1"),
        (b"a|||\n", "line 1"),
        (b"\xff|||b\n", "not UTF-8"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message.replace("|", r"\|")):
        read_phrase_table(path)
    with pytest.raises(UserError, match="No such file"):
        read_phrase_table(tmp_path / "missing")
