"""Values of a file and of flags: they take the type of their option, and flags win."""

from pathlib import Path

import pytest

from onmt_entmax.options.values import OptionError
from tests.options.reading import read_training


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("rnn_size", "rnn_size: 32", 32, id="a whole number"),
        pytest.param("learning_rate", "learning_rate: 1e-3", 0.001, id="a number"),
        pytest.param("dropout", "dropout: [0.1, 0.2]", [0.1, 0.2], id="a list"),
        pytest.param("position_encoding", "position_encoding: 'true'", True, id="a text for true"),
        pytest.param("input_feed", "input_feed: 0", False, id="0 for false"),
        pytest.param("tgt_vocab", "tgt_vocab: null", None, id="null"),
        pytest.param("save_model", "save_model: '010'", "010", id="digits for a text"),
        pytest.param(
            "train_steps", "train_steps: 1e5", 100_000, id="an exponent for a whole number"
        ),
    ],
)
def test_values_of_a_file_take_the_type_of_their_option(
    tmp_path: Path, name: str, text: str, value: object
) -> None:
    read = read_training(tmp_path, text)[name]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "flags", "value"),
    [
        pytest.param("dropout", "dropout: 0.2", "-dropout 0.1 0.3", [0.1, 0.3], id="two values"),
        pytest.param(
            "position_encoding",
            "position_encoding: true",
            "-position_encoding false",
            False,
            id="false",
        ),
        pytest.param("overwrite", "overwrite: false", "-overwrite", True, id="no value for true"),
        pytest.param("gpu_ranks", "gpu_ranks: [1]", "-gpu_ranks", [], id="no value of a list"),
        pytest.param("seed", "seed: 5", "-seed -1", -1, id="a negative number"),
        pytest.param("max_length", "", "-max_length 1e5", 100_000, id="an exponent"),
        pytest.param(
            "src_vocab_size", "", "-src_vocab_size 900719925475", 900719925475, id="many digits"
        ),
    ],
)
def test_flags_win_and_take_the_type_of_their_option(
    tmp_path: Path, name: str, text: str, flags: str, value: object
) -> None:
    read = read_training(tmp_path, text, *flags.split())[name]
    assert read == value
    assert type(read) is type(value)


def test_the_origin_of_a_value_is_its_file_or_the_command_line(tmp_path: Path) -> None:
    """Messages name it."""
    origin = read_training(tmp_path, "rnn_size: 32\nseed: 5", "-seed", "6").origin
    assert origin["rnn_size"] == str(tmp_path / "c.yaml")
    assert origin["seed"] == "command line"


@pytest.mark.parametrize(
    ("name", "text", "flags", "value"),
    [
        pytest.param("batch_type", "batch_type: words", "-batch_type sents", "sents", id="a name"),
        pytest.param(
            "model_dtype", "model_dtype: bf16", "-model_dtype fp32", "fp32", id="a name of stock"
        ),
        pytest.param(
            "copy_attn", "copy_attn: true", "-copy_attn false", False, id="an option not supported"
        ),
        pytest.param("gpu_ranks", "gpu_ranks: -1", "-gpu_ranks 0", [0], id="out of range"),
        pytest.param("gpu_ranks", "gpu_ranks: [x]", "-gpu_ranks", [], id="a text in a list"),
        pytest.param(
            "rnn_size", "hidden_size: big", "-rnn_size 32", 32, id="by another name in the file"
        ),
        pytest.param(
            "rnn_size", "rnn_size: big", "-hidden_size 32", 32, id="by another name of the flag"
        ),
        pytest.param(
            "train_steps", "train_epochs: many", "-train_steps 5", 5, id="an option it replaces"
        ),
        pytest.param(
            "generator_function",
            "generator_function: entmax\ngenerator_alpha: high",
            "-generator_function softmax",
            "softmax",
            id="an option that needs the value",
        ),
    ],
)
def test_values_that_a_flag_replaces_are_not_checked(
    tmp_path: Path, name: str, text: str, flags: str, value: object
) -> None:
    options = read_training(tmp_path, text, *flags.split())
    assert options[name] == value
    assert not options.notes.ignored
    with pytest.raises(OptionError):  # without the flag
        read_training(tmp_path, text)


def test_of_a_flag_that_is_given_twice_the_last_counts(tmp_path: Path) -> None:
    options = read_training(tmp_path, "", "-layers", "1", "-layers", "2")
    assert options["layers"] == 2


def test_an_option_without_effect_has_its_default(tmp_path: Path) -> None:
    assert read_training(tmp_path, "early_stopping: 4")["early_stopping"] == 0
