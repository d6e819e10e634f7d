"""The sentence pairs along whose targets models are forced."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.translator import Translator
from tests.papers.figure_models import SOURCES, TARGETS, write_model
from tests.papers.texts import write_texts
from tools.papers.forced_steps import Pair, ParallelText, read_pairs


@pytest.fixture
def translator(tmp_path: Path) -> Translator:
    return Translator.from_folders([write_model(tmp_path / "model", 1.5)])


def pairs_of(
    translator: Translator, folder: Path, sources: list[str], limit: int | None = None
) -> list[Pair]:
    """Write sources with `TARGETS`, and return the pairs that are read again."""
    write_texts(folder, sources, TARGETS)
    text = ParallelText(folder / "source.txt", folder / "target.txt", limit=limit)
    return read_pairs(translator, text)


def test_pairs_have_source_tokens_and_target_ids(translator: Translator, tmp_path: Path) -> None:
    pairs = pairs_of(translator, tmp_path, SOURCES)
    decode = translator.vocabularies.target.decode
    assert [" ".join(pair.source) for pair in pairs] == SOURCES
    assert [" ".join(decode(pair.target)) for pair in pairs] == TARGETS


BLANK_THIRD = [*SOURCES[:2], ""]


def test_lines_after_the_limit_are_not_read(translator: Translator, tmp_path: Path) -> None:
    pairs = pairs_of(translator, tmp_path, BLANK_THIRD, limit=2)
    assert [" ".join(pair.source) for pair in pairs] == SOURCES[:2]


def test_a_blank_line_before_the_limit_is_refused(translator: Translator, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 3 is blank"):
        pairs_of(translator, tmp_path, BLANK_THIRD, limit=3)
