"""Parallel text: files that may be compressed, and development sets held out of it."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.data.parallel import hold_out, read_pairs
from onmt_entmax.errors import UserError

# --- reading ---


@pytest.mark.parametrize(
    ("ending", "compress"),
    [
        pytest.param("", bytes, id="not compressed"),
        pytest.param(".gz", gzip.compress, id="gzip"),
        pytest.param(".xz", lzma.compress, id="xz"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False], ids=["with its ending", "without its ending"])
def test_pairs_are_read_from_files_of_each_compression(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes], is_named: bool
) -> None:
    for side in ("source", "target"):
        content = f"{side} 1\n{side} 2\n".encode()
        (tmp_path / f"{side}{ending}").write_bytes(compress(content))
    named = ending if is_named else ""
    pairs = read_pairs(tmp_path / f"source{named}", tmp_path / f"target{named}")
    assert pairs == [("source 1", "target 1"), ("source 2", "target 2")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("missing", b"", "target: no such file, nor with .xz or .gz", id="missing"),
        pytest.param("target.gz", b"no gzip", "target.gz: cannot read: Not a gzip", id="no gzip"),
        pytest.param(
            "target.xz", lzma.compress(b"a\n")[:-9], "target.xz: cannot read", id="cut off"
        ),
        pytest.param("target", b"a\nb\n", "target: 2 lines, but .* has 1", id="another length"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / "source").write_bytes(b"a\n")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_pairs(tmp_path / "source", tmp_path / "target")


# --- development sets ---

# Many pairs share a sentence on one side; one pair has an empty side.
PAIRS = [(f"s{number % 40}", f"t{number % 30}") for number in range(200)] + [("", "t1")]


def test_a_held_out_set_has_as_many_distinct_pairs_as_asked_for() -> None:
    _, held_out = hold_out(PAIRS, 5, seed=1)
    assert len(held_out) == len(set(held_out)) == 5


def test_a_held_out_set_has_no_pair_with_an_empty_side() -> None:
    most = len({pair for pair in PAIRS if all(pair)}) - 1  # one pair is left for training
    _, held_out = hold_out(PAIRS, most, seed=1)
    assert ("", "t1") not in held_out


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_training_shares_no_sentence_with_the_held_out_set(side: int) -> None:
    training, held_out = hold_out(PAIRS, 5, seed=1)
    assert training
    assert {pair[side] for pair in training}.isdisjoint(pair[side] for pair in held_out)


def test_training_keeps_the_pairs_that_share_no_sentence_with_the_held_out_set() -> None:
    pairs = [("a", "A"), ("b", "B"), ("c", "C")]
    training, held_out = hold_out(pairs, 1, seed=1)
    assert sorted(training + held_out) == pairs


def test_the_same_seed_holds_out_the_same_pairs() -> None:
    assert hold_out(PAIRS, 5, seed=1) == hold_out(PAIRS, 5, seed=1)


def test_another_seed_holds_out_other_pairs() -> None:
    assert hold_out(PAIRS, 5, seed=1) != hold_out(PAIRS, 5, seed=2)


def test_more_pairs_than_there_are_cannot_be_held_out() -> None:
    with pytest.raises(UserError, match=r"cannot hold out 500 .* lower --val_size"):
        hold_out(PAIRS, 500, seed=1)
