"""Options of `train` without effect or with another meaning: notes, and what they become."""

from pathlib import Path

import pytest

from tests.options.setups import TRANSFORMER, Changes, id_of, toy_setup

# --- options without effect ---


def test_options_of_a_transformer_are_without_effect_in_a_recurrent_network(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, heads=4, pos_ffn_activation_fn="gelu").notes
    assert note.endswith(": heads (of a Transformer), pos_ffn_activation_fn (of a Transformer)")


def test_options_of_a_recurrent_network_are_without_effect_in_a_transformer(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, rnn_type="GRU", **TRANSFORMER).notes
    assert note == "without effect here: rnn_type (of a recurrent decoder)"


def test_options_that_no_transform_reads_are_listed(tmp_path: Path) -> None:
    read = toy_setup(tmp_path, src_subword_model="nowhere.model", src_seq_length=9)
    assert read.notes == (
        "without effect here: src_subword_model (no transform reads it), "
        "src_seq_length (no transform reads it)",
    )
    assert (read.record["src_subword_model"], read.record["src_seq_length"]) == (None, 200)


def test_options_that_a_transform_reads_are_kept(tmp_path: Path) -> None:
    read = toy_setup(tmp_path, transforms=["filtertoolong"], src_seq_length=9)
    assert not read.notes
    assert read.data.transform_options["src_seq_length"] == 9


# --- batch sizes ---


def test_a_batch_size_that_changes_its_meaning_is_warned_of(tmp_path: Path) -> None:
    read = toy_setup(tmp_path, "-batch_type sents", batch_type="tokens", batch_size=16)
    assert read.warnings == (
        "command line: batch_type: sents: batch_size 16 counted tokens; give batch_size too",
    )
    assert (read.data.batch_type, read.data.batch_size) == ("sents", 16)


@pytest.mark.parametrize("flags", ["-batch_type sents -batch_size 8", "-batch_type tokens"])
def test_a_batch_size_that_keeps_its_meaning_is_not_warned_of(tmp_path: Path, flags: str) -> None:
    assert not toy_setup(tmp_path, flags, batch_type="tokens").warnings


# --- options of OpenNMT-py that become others ---


@pytest.mark.parametrize(
    ("changes", "dtype"),
    [
        ({}, "float32"),
        ({"gpu_ranks": [0]}, "tf32"),
        ({"gpu_ranks": [0], "matmul_dtype": "float32"}, "float32"),
    ],
    ids=id_of,
)
def test_half_precision_is_32_bits_and_on_a_gpu_tf32(
    tmp_path: Path, changes: Changes, dtype: str
) -> None:
    read = toy_setup(tmp_path, model_dtype="fp16", **changes)
    assert read.training.matmul_dtype == read.record["matmul_dtype"] == dtype
    assert "model_dtype fp16 as 32-bit floats" in read.notes[0]


@pytest.mark.parametrize(
    ("criteria", "selection", "notes"),
    [("accuracy", "token_accuracy", 1), ("ppl", "loss", 1), (None, "loss", 0)],
)
def test_criteria_of_early_stopping_are_the_selection(
    tmp_path: Path, criteria: str | None, selection: str, notes: int
) -> None:
    read = toy_setup(tmp_path, early_stopping=3, early_stopping_criteria=criteria)
    assert read.training.selection == read.record["selection"] == selection
    assert len(read.notes) == notes


@pytest.mark.parametrize("criteria", ["accuracy", "ppl", None])
def test_a_selection_wins_over_criteria_of_early_stopping(
    tmp_path: Path, criteria: str | None
) -> None:
    changes = {"early_stopping": 3, "early_stopping_criteria": criteria}
    read = toy_setup(tmp_path, "-selection exact_match", **changes)
    assert read.training.selection == "exact_match"
