"""`tools.papers.tables` with a matrix of several pairs of languages: a column for each pair."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.in_process import exit_status, refusal
from tests.papers.matrices import write_matrix
from tools.papers import tables

PAIRS = ("de-en", "en-de")  # Table 2 of the paper has both, Table 3 only the first


def write_pairs(folder: Path) -> Path:
    """Write a matrix of `PAIRS` with two cells and one seed, and its test sets.

    All pairs have the same toy corpus, which `write_matrix` writes.
    """
    corpus = {
        "base": "toy.yaml",
        "source": str(folder / "valid.src"),
        "reference": str(folder / "valid.tgt"),
    }
    functions = ("global_attention_function", "generator_function")
    path = write_matrix(
        folder,
        **dict.fromkeys(corpus),  # each pair has its own
        pairs=dict.fromkeys(PAIRS, corpus),
        seeds=[1],
        cells={name: dict.fromkeys(functions, name) for name in ("softmax", "entmax15")},
        evaluate="bleu",
        paper="table2",
    )
    for side in ("src", "tgt"):
        shutil.copy(folder / f"valid.{side}", folder / f"test.{side}")
    return path


def test_an_unknown_pair_is_refused(tmp_path: Path) -> None:
    arguments = ["run", write_pairs(tmp_path), "--pairs", "de"]
    assert "no pair 'de'" in refusal(tables.main, arguments)


def test_a_test_set_waits_for_all_runs(tmp_path: Path) -> None:
    line = refusal(tables.main, ["test", write_pairs(tmp_path)])
    assert "not done: de-en softmax seed 1" in line


@pytest.fixture(scope="module")
def pairs_table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `table` prints of a matrix of pairs that was run."""
    path = write_pairs(tmp_path_factory.mktemp("pairs"))
    assert exit_status(tables.main, ["run", str(path), "--jobs", "2"]) == 0
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(tables.main, ["table", str(path)]) == 0
    return printed.getvalue()


def test_each_pair_has_a_column(pairs_table: str) -> None:
    head = "| cell | de-en, BLEU (13a), runs 1 | en-de, BLEU (13a), runs 1 |"
    assert pairs_table.startswith(head)


def test_published_bleu_stands_in_the_columns_of_its_pairs(pairs_table: str) -> None:
    assert "| softmax, paper, tokenised | 25.70 ± 0.15 | 21.86 ± 0.09 |" in pairs_table


def test_published_nonzeros_stand_only_in_the_columns_of_their_pair(pairs_table: str) -> None:
    assert "| entmax15, paper | 5.55 | 16.13 | - | - |" in pairs_table


def test_each_pair_has_a_paired_test_against_softmax(pairs_table: str) -> None:
    assert "| against softmax | seed | entmax15 |" in pairs_table
    assert pairs_table.count("(p ") == len(PAIRS)
