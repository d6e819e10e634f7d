"""Notes and warnings of options that have no effect, are given twice, or are read as others."""

from pathlib import Path

import pytest

from tests.options.reading import read_training

# --- options without effect ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "note"),
    [
        pytest.param("save_data: x", "save_data", id="of another program"),
        pytest.param("search: exact", "search", id="of translate alone"),
        pytest.param("pool_factor: [odd]", "pool_factor", id="whose value nobody checks"),
        pytest.param("seed:", "seed (empty)", id="without a value"),
        pytest.param("layers: ''", "layers (empty)", id="with an empty text"),
        pytest.param(
            "tensorboard_log_dir: x",
            "tensorboard_log_dir (needs tensorboard)",
            id="that needs another option",
        ),
        pytest.param(
            "early_stopping: 4",
            "early_stopping (needs data: valid)",
            id="that needs a development set",
        ),
    ],
)
def test_an_option_without_effect_is_noted(tmp_path: Path, line: str, note: str) -> None:
    options = read_training(tmp_path, line)
    assert options.notes.lines() == [f"without effect here: {note}"]
    assert not options.notes.warnings


def test_all_options_without_effect_are_noted_in_one_line(tmp_path: Path) -> None:
    options = read_training(tmp_path, "save_data: x\nn_sample: 10\nbeam_size: 3")
    assert options.notes.lines() == ["without effect here: save_data, n_sample, beam_size"]


@pytest.mark.parametrize(
    "line",
    [
        "verbose: false",
        "save_data:",
        "log_file: ''",
        "tgt_vocab:",
        "num_threads:",
        "num_threads: ''",
    ],
)
def test_an_option_that_is_off_and_has_no_effect_is_not_noted(tmp_path: Path, line: str) -> None:
    assert not read_training(tmp_path, line).notes.ignored


@pytest.mark.parametrize("flags", ["-gpu_verbose_level 0", "-num_threads"])
def test_a_flag_without_effect_is_noted_with_or_without_a_value(tmp_path: Path, flags: str) -> None:
    name, *_ = flags.split()
    notes = read_training(tmp_path, "", *flags.split()).notes
    assert notes.ignored == [name.lstrip("-")]


# --- options that are read as others ---------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "note"),
    [
        pytest.param("hidden_size: 8", "hidden_size as rnn_size", id="another name"),
        pytest.param("optim: fusedadam", "optim fusedadam as adam", id="another value"),
        pytest.param(
            "batch_size_multiple: 8",
            "batch_size_multiple as batches of any size",
            id="no value",
        ),
        pytest.param(
            "subword_alpha: 0.1",
            "subword_alpha as src_subword_alpha and tgt_subword_alpha",
            id="two options",
        ),
    ],
)
def test_an_option_that_is_read_as_something_else_is_noted(
    tmp_path: Path, line: str, note: str
) -> None:
    options = read_training(tmp_path, line)
    assert options.notes.lines() == [f"read as OpenNMT-py does not: {note}"]
    assert not options.notes.warnings


def test_all_options_that_are_read_as_others_are_noted_in_one_line(tmp_path: Path) -> None:
    options = read_training(tmp_path, "hidden_size: 8\noptim: fusedadam")
    assert options.notes.lines() == [
        "read as OpenNMT-py does not: optim fusedadam as adam, hidden_size as rnn_size"
    ]


def test_a_flag_that_is_read_under_another_name_is_noted(tmp_path: Path) -> None:
    options = read_training(tmp_path, "rnn_size: 8", "-hidden_size", "32")
    assert options.notes.replaced == ["hidden_size as rnn_size"]


# --- options that are given twice ------------------------------------------------------------


def test_an_option_that_is_given_twice_with_one_value_is_noted(tmp_path: Path) -> None:
    options = read_training(tmp_path, "src_vocab: a\nseed: 3\nsrc_vocab: a")
    assert options.notes.lines() == [
        "given twice, with equal values: src_vocab (lines 2 and 4)"  # the corpus is line 1
    ]


def test_a_flag_that_is_given_twice_with_two_values_is_a_warning(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", "-layers", "1", "-layers", "2")
    assert options.notes.warnings == [
        "command line: -layers is given twice; the last counts: -layers 2"
    ]


def test_a_flag_that_is_given_twice_with_one_value_is_a_note(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", "-layers", "2", "--layers=2")
    assert options.notes.lines() == ["given twice, with equal values: -layers"]
    assert not options.notes.warnings


# --- sizes of both sides: `layers` sets `enc_layers` and `dec_layers`, and so on ----------------


def test_a_size_of_both_sides_that_replaces_that_of_a_side_is_a_warning(tmp_path: Path) -> None:
    options = read_training(tmp_path, "layers: 3\nenc_layers: 1\ndec_layers: 3")
    (warning,) = options.notes.warnings
    assert "c.yaml: layers: 3 (line 2) replaces enc_layers: 1 (line 3)" in warning


def test_a_flag_of_both_sides_that_replaces_that_of_a_side_is_a_warning(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", *"-rnn_size 8 -enc_rnn_size 4".split())
    (warning,) = options.notes.warnings
    assert warning.startswith("command line: rnn_size: 8 replaces enc_rnn_size: 4;")


def test_a_flag_of_a_side_replaces_the_size_of_both_without_a_warning(tmp_path: Path) -> None:
    assert not read_training(tmp_path, "layers: 3", "-enc_layers", "1").notes.warnings
