"""Values of a file and of flags: their types, which of them counts, and errors in one line."""

from pathlib import Path

import pytest

from onmt_entmax.options.reader import read_options
from onmt_entmax.options.train import training_options
from onmt_entmax.options.values import OptionError
from tests.options.reading import read_training, refusal


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rnn_size", "rnn_size: 32", 32),
        ("learning_rate", "learning_rate: 1e-3", 0.001),
        ("dropout", "dropout: [0.1, 0.2]", [0.1, 0.2]),
        ("position_encoding", "position_encoding: 'true'", True),
        ("input_feed", "input_feed: 0", False),
        ("tgt_vocab", "tgt_vocab: null", None),
        ("save_model", "save_model: '010'", "010"),
        ("train_steps", "train_steps: 1e5", 100_000),
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
        ("dropout", "dropout: 0.2", "-dropout 0.1 0.3", [0.1, 0.3]),
        ("position_encoding", "position_encoding: true", "-position_encoding false", False),
        ("overwrite", "overwrite: false", "-overwrite", True),
        ("gpu_ranks", "gpu_ranks: [1]", "-gpu_ranks", []),
        ("seed", "seed: 5", "-seed -1", -1),
        ("max_length", "", "-max_length 1e5", 100_000),
        ("src_vocab_size", "", "-src_vocab_size 900719925475", 900719925475),
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
        ("batch_type", "batch_type: words", "-batch_type sents", "sents"),
        ("model_dtype", "model_dtype: bf16", "-model_dtype fp32", "fp32"),
        ("copy_attn", "copy_attn: true", "-copy_attn false", False),
        ("gpu_ranks", "gpu_ranks: -1", "-gpu_ranks 0", [0]),
        ("gpu_ranks", "gpu_ranks: [x]", "-gpu_ranks", []),
        ("rnn_size", "hidden_size: big", "-rnn_size 32", 32),
        ("rnn_size", "rnn_size: big", "-hidden_size 32", 32),
        ("train_steps", "train_epochs: many", "-train_steps 5", 5),
        (
            "generator_function",
            "generator_function: entmax\ngenerator_alpha: high",
            "-generator_function softmax",
            "softmax",
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


# --- errors ----------------------------------------------------------------------------------

NAMES_REFUSED = [
    ("rnn_siz: 3", r"c.yaml: rnn_siz: no such option; did you mean 'rnn_size'\?"),
    ("loss_alpha: 1.5", "loss_alpha: no such option; use generator_function: entmax and"),
    ("copy_attn: true", "copy_attn: not supported: copy attention"),
    ("0x" + "f" * 900 + ": 1", r"c.yaml: \d+\.\.\.: no such option"),
    ("a: &a {<<: *a}", "a: no such option"),
]
VALUES_REFUSED = [
    ("rnn_size: big", "c.yaml: rnn_size: must be -1 or a whole number from 1 to .*, not 'big'"),
    ("rnn_size: 2.5", "rnn_size: must be"),
    ("rnn_size: [2]", "rnn_size: must be"),
    ("position_encoding: maybe", "position_encoding: must be true or false, not 'maybe'"),
    ("generator_function: entmax1", "must be one of softmax.*; did you mean 'entmax15'"),
    ("generator_function: tsallis15", "OpenNMT-entmax's tsallis15 is entmax15 here"),
    ("dropout: []", "dropout: expected at least one value"),
    ("save_model: no", "c.yaml: save_model: must be text, not False; put it between quotes"),
    ("save_model: 2024-01-01", "save_model: must be text, not datetime.*between quotes"),
    ('save_model: "a\\0b"', "save_model: must be text, not 'a.x00b'"),
    ("encoder_type: ggnn", "not 'ggnn'; graph encoders are not supported"),
    ("model_task: lm", "not 'lm'; language models are not supported"),
    ("gpu_ranks: -1", r"for the CPU, leave it out or write gpu_ranks: \[\]"),
    ("generator_alpha: 1.2", "generator_alpha: is only read with generator_function: entmax"),
]
REPETITIONS_REFUSED = [
    ("rnn_size: 3\nrnn_size: 4", "line 3: .*'rnn_size' is given twice.* differs .* line 2"),
    ("rnn_size: 1\nrnn_size: true", "'rnn_size' is given twice"),
    ("hidden_size: 3\nrnn_size: 4", "rnn_size: is the same option as hidden_size here"),
]
FILES_REFUSED = [
    ("rnn_size: [3", "line 2: not valid YAML"),
    ("# " + "x" * (1 << 20), "larger than 1,048,576 bytes"),
]


def beginning(text: str) -> str:
    """Name a case by what it begins with; some have a million characters."""
    return text[:40]


@pytest.mark.parametrize(
    ("text", "message"),
    [*NAMES_REFUSED, *VALUES_REFUSED, *REPETITIONS_REFUSED, *FILES_REFUSED],
    ids=beginning,
)
def test_one_line_names_the_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    """If an option is wrong, the message names its key, too."""
    assert "c.yaml" in refusal(lambda: read_training(tmp_path, text), message)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("-rnn_siz 3", "command line: -rnn_siz: no such option; did you mean 'rnn_size'"),
        ("-rnn_size", "-rnn_size: expected one value, got 0"),
        ("-overwrite true rubbish", "-overwrite: expected one value, got 2"),
        ("-dropout 0 -dropout 1", "name all values after one -dropout"),
        ("file.yaml", "does not follow an option"),
        ("-config nothing.yaml", r"no such file: nothing.yaml \(searched in "),
        ("-config /dev", "/dev: Is a directory"),
        ("-data {c:1,c:[}", "-?data: line 1: not valid YAML"),
        ("-beam_size 3", "-beam_size: no such option; onmt-entmax translate has it"),
        ("-layers 1", "command line: data: this option is required; give -data, or -config FILE"),
    ],
)
def test_one_line_names_the_wrong_flag(flags: str, message: str) -> None:
    refusal(lambda: read_options(training_options(), flags.split()), message)


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400], ids=["large", "small"])
def test_a_number_beyond_all_floats_is_refused_in_one_line(tmp_path: Path, number: str) -> None:
    """The option has no range; it is refused whatever its value is."""
    text = f"lambda_align: {number}"
    refusal(lambda: read_training(tmp_path, text), "lambda_align: not supported")
