"""Notes and warnings of `train`: options without effect, and options with another meaning."""

from pathlib import Path

import pytest

from tests.options.trainings import TRANSFORMER, Changes, parameter_id, toy_setup

# --- options without effect ---


def test_options_of_a_transformer_are_without_effect_in_a_recurrent_network(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, heads=4, pos_ffn_activation_fn="gelu").notes
    assert note == (
        "without effect here: heads (of a Transformer), pos_ffn_activation_fn (of a Transformer)"
    )


def test_options_of_a_recurrent_network_are_without_effect_in_a_transformer(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, rnn_type="GRU", **TRANSFORMER).notes
    assert note == "without effect here: rnn_type (of a recurrent decoder)"


UNREAD = {"src_subword_model": "nowhere.model", "src_seq_length": 9}  # if there is no transform


def test_options_that_no_transform_reads_are_without_effect(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, **UNREAD).notes
    assert note == (
        "without effect here: src_subword_model (no transform reads it), "
        "src_seq_length (no transform reads it)"
    )


def test_options_that_no_transform_reads_are_recorded_with_their_defaults(tmp_path: Path) -> None:
    record = toy_setup(tmp_path, **UNREAD).record
    assert {name: record[name] for name in UNREAD} == {
        "src_subword_model": None,
        "src_seq_length": 200,
    }


def test_options_that_a_transform_reads_are_kept(tmp_path: Path) -> None:
    setup = toy_setup(tmp_path, transforms=["filtertoolong"], src_seq_length=9)
    assert not setup.notes
    assert setup.data.transform_options["src_seq_length"] == 9


# --- batch sizes ---


def test_another_batch_type_warns_that_the_batch_size_changes_its_meaning(tmp_path: Path) -> None:
    setup = toy_setup(tmp_path, "-batch_type sents", batch_type="tokens", batch_size=16)
    assert setup.warnings == (
        "command line: batch_type: sents: batch_size 16 counted tokens; give batch_size too",
    )


def test_the_batch_type_of_a_flag_keeps_the_batch_size_of_the_file(tmp_path: Path) -> None:
    setup = toy_setup(tmp_path, "-batch_type sents", batch_type="tokens", batch_size=16)
    assert (setup.data.batch_type, setup.data.batch_size) == ("sents", 16)


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
    ids=parameter_id,
)
def test_half_precision_is_float32_and_on_a_gpu_tf32_by_default(
    tmp_path: Path, changes: Changes, dtype: str
) -> None:
    setup = toy_setup(tmp_path, model_dtype="fp16", **changes)
    assert setup.training.matmul_dtype == setup.record["matmul_dtype"] == dtype


def test_half_precision_is_noted(tmp_path: Path) -> None:
    (note,) = toy_setup(tmp_path, model_dtype="fp16").notes
    assert note == "read as OpenNMT-py does not: model_dtype fp16 as 32-bit floats"


@pytest.mark.parametrize(
    ("criteria", "selection"), [("accuracy", "token_accuracy"), ("ppl", "loss"), (None, "loss")]
)
def test_criteria_of_early_stopping_select_the_checkpoint(
    tmp_path: Path, criteria: str | None, selection: str
) -> None:
    setup = toy_setup(tmp_path, early_stopping=3, early_stopping_criteria=criteria)
    assert setup.training.selection == setup.record["selection"] == selection


@pytest.mark.parametrize(
    ("criteria", "read_as"), [("accuracy", "selection token_accuracy"), ("ppl", "selection loss")]
)
def test_criteria_of_early_stopping_are_noted(tmp_path: Path, criteria: str, read_as: str) -> None:
    (note,) = toy_setup(tmp_path, early_stopping=3, early_stopping_criteria=criteria).notes
    expected = f"read as OpenNMT-py does not: early_stopping_criteria {criteria} as {read_as}"
    assert note == expected


def test_early_stopping_without_criteria_is_not_noted(tmp_path: Path) -> None:
    assert not toy_setup(tmp_path, early_stopping=3).notes


@pytest.mark.parametrize("criteria", ["accuracy", "ppl", None])
def test_a_selection_wins_over_criteria_of_early_stopping(
    tmp_path: Path, criteria: str | None
) -> None:
    changes = {"early_stopping": 3, "early_stopping_criteria": criteria}
    setup = toy_setup(tmp_path, "-selection exact_match", **changes)
    assert setup.training.selection == "exact_match"
