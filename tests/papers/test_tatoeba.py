"""The sentence pairs of Tatoeba: one table, from which a development set is split off."""

import io
import zipfile

import pytest

from tests.papers.corpus_copies import publish
from tools.papers.parallel_corpora import PARALLEL, Sides, read_parallel, split_tatoeba
from tools.papers.parallel_texts import TATOEBA_VAL

# English, German and, in most lines, a licence. e7 has two translations, of which one is twice
# there.
LINES = [f"e{n}\tg{n}\tCC" for n in range(3000)] + ["e7\tg7", "e7\tother"]
PAIRS = {tuple(line.split("\t")[:2]) for line in LINES}


def pairs_of(parts: dict[str, Sides]) -> set[tuple[str, ...]]:
    """Return the English and German sentences of all parts, in which German comes first."""
    return {
        (english, german) for part in parts.values() for german, english in zip(*part, strict=True)
    }


def test_the_split_depends_on_no_order() -> None:
    assert split_tatoeba(LINES) == split_tatoeba(LINES[::-1])


def test_the_dev_set_has_its_size() -> None:
    german, english = split_tatoeba(LINES)["val"]
    assert len(german) == len(english) == TATOEBA_VAL


def test_the_split_leaves_nothing_out() -> None:
    assert pairs_of(split_tatoeba(LINES)) == PAIRS


def test_no_english_sentence_is_in_both_parts() -> None:
    parts = split_tatoeba(LINES)
    (_, train), (_, val) = parts["train"], parts["val"]
    assert not {*train} & {*val}


def test_tatoeba_is_downloaded_as_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("deu.txt", "".join(f"{line}\n" for line in LINES))
    publish(monkeypatch, "tatoeba", {"deu-eng.zip": archive.getvalue()})
    assert pairs_of(read_parallel(PARALLEL["tatoeba"], None)) == PAIRS
