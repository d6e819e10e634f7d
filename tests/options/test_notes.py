"""Notes and warnings of options that have no effect, are given twice, or are read as others."""

from pathlib import Path

import pytest

from tests.options.reading import read_training


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        pytest.param(
            "save_data: x\nn_sample: 10\npool_factor: [odd]\nverbose: false\nbeam_size: 3",
            "without effect here: save_data, n_sample, pool_factor, beam_size",
            id="options of other programs",
        ),
        pytest.param(
            "dump_samples: true\ntensorboard_log_dir: x\nearly_stopping: 4\nseed:\nlayers: ''",
            "without effect here: dump_samples, seed (empty), layers (empty), "
            "tensorboard_log_dir (needs tensorboard), early_stopping (needs data: valid)",
            id="with the reason",
        ),
        pytest.param(
            "src_vocab: a\nseed: 3\nsrc_vocab: a",
            "given twice, with equal values: src_vocab (lines 2 and 4)",
            id="given twice",
        ),
        pytest.param(
            "hidden_size: 8\noptim: fusedadam\nsubword_alpha: 0.1\nbatch_size_multiple: 8",
            "read as OpenNMT-py does not: optim fusedadam as adam, "
            "batch_size_multiple as batches of any size, hidden_size as rnn_size, "
            "subword_alpha as src_subword_alpha and tgt_subword_alpha",
            id="read as something else",
        ),
    ],
)
def test_all_options_of_a_kind_are_noted_in_one_line(tmp_path: Path, text: str, notes: str) -> None:
    options = read_training(tmp_path, text)
    assert options.notes.lines() == [notes]
    assert not options.notes.warnings


def test_an_empty_value_of_an_option_without_effect_is_not_noted(tmp_path: Path) -> None:
    assert not read_training(tmp_path, "save_data:\nlog_file: ''\ntgt_vocab:").notes.ignored


@pytest.mark.parametrize("flags", ["-gpu_verbose_level 0", "-num_threads"])
def test_a_flag_without_effect_is_a_note_with_or_without_a_value(
    tmp_path: Path, flags: str
) -> None:
    name, *_ = flags.split()
    notes = read_training(tmp_path, "", *flags.split()).notes
    assert notes.ignored == [name.lstrip("-")]


@pytest.mark.parametrize("text", ["num_threads:", "num_threads: ''"])
def test_an_empty_value_of_an_unknown_option_without_effect_is_not_said(
    tmp_path: Path, text: str
) -> None:
    assert not read_training(tmp_path, text).notes.ignored


def test_a_flag_of_another_name_is_a_note(tmp_path: Path) -> None:
    options = read_training(tmp_path, "rnn_size: big", "-hidden_size", "32")
    assert options.notes.replaced == ["hidden_size as rnn_size"]
    assert options["rnn_size"] == 32


def test_a_flag_that_is_given_twice_with_two_values_is_a_warning(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", "-layers", "1", "-layers", "2")
    assert options.notes.warnings == [
        "command line: -layers is given twice; the last counts: -layers 2"
    ]


def test_a_flag_that_is_given_twice_with_one_value_is_a_note(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", "-layers", "2", "--layers=2")
    assert options.notes.lines() == ["given twice, with equal values: -layers"]
    assert not options.notes.warnings


class TestASizeOfBothSides:
    """`layers` sets `enc_layers` and `dec_layers`, and `rnn_size` the sizes of both."""

    def test_warns_if_it_replaces_the_size_of_a_side(self, tmp_path: Path) -> None:
        options = read_training(tmp_path, "layers: 3\nenc_layers: 1\ndec_layers: 3")
        (warning,) = options.notes.warnings
        assert "c.yaml: layers: 3 (line 2) replaces enc_layers: 1 (line 3)" in warning

    def test_warns_if_it_replaces_the_flag_of_a_side(self, tmp_path: Path) -> None:
        options = read_training(tmp_path, "", *"-rnn_size 8 -enc_rnn_size 4".split())
        (warning,) = options.notes.warnings
        assert warning.startswith("command line: rnn_size: 8 replaces enc_rnn_size: 4;")

    def test_does_not_warn_if_a_flag_replaces_it(self, tmp_path: Path) -> None:
        assert not read_training(tmp_path, "layers: 3", "-enc_layers", "1").notes.warnings
