"""Wrong options in a file or a flag: one line names the file or the flag, and the option."""

from pathlib import Path

import pytest

from onmt_entmax.options.reader import read_options
from onmt_entmax.options.train import training_options
from tests.options.reading import read_training, refusal

# What a file says, and what the message says of it.
NAMES = {
    "a misspelt name": (
        "rnn_siz: 3",
        r"c.yaml: rnn_siz: no such option; did you mean 'rnn_size'\?",
    ),
    "a name of OpenNMT-entmax": (
        "loss_alpha: 1.5",
        "loss_alpha: no such option; use generator_function: entmax and",
    ),
    "an option not supported": ("copy_attn: true", "copy_attn: not supported: copy attention"),
    "a number of 900 digits": ("0x" + "f" * 900 + ": 1", r"c.yaml: \d+\.\.\.: no such option"),
    "an alias of itself": ("a: &a {<<: *a}", "a: no such option"),
}
VALUES = {
    "a text for a number": (
        "rnn_size: big",
        "c.yaml: rnn_size: must be -1 or a whole number from 1 to .*, not 'big'",
    ),
    "a fraction": ("rnn_size: 2.5", "rnn_size: must be"),
    "a list for a number": ("rnn_size: [2]", "rnn_size: must be"),
    "neither true nor false": (
        "position_encoding: maybe",
        "position_encoding: must be true or false, not 'maybe'",
    ),
    "a misspelt value": (
        "generator_function: entmax1",
        "must be one of softmax.*; did you mean 'entmax15'",
    ),
    "a value of OpenNMT-entmax": (
        "generator_function: tsallis15",
        "OpenNMT-entmax's tsallis15 is entmax15 here",
    ),
    "an empty list": ("dropout: []", "dropout: expected at least one value"),
    "a text that YAML reads as false": (
        "save_model: no",
        "c.yaml: save_model: must be text, not False; put it between quotes",
    ),
    "a text that YAML reads as a date": (
        "save_model: 2024-01-01",
        "save_model: must be text, not datetime.*between quotes",
    ),
    "a zero byte": ('save_model: "a\\0b"', "save_model: must be text, not 'a.x00b'"),
    "an encoder not supported": (
        "encoder_type: ggnn",
        "not 'ggnn'; graph encoders are not supported",
    ),
    "a task not supported": ("model_task: lm", "not 'lm'; language models are not supported"),
    "-1 for the CPU": ("gpu_ranks: -1", r"for the CPU, leave it out or write gpu_ranks: \[\]"),
    "a value without the option it needs": (
        "generator_alpha: 1.2",
        "generator_alpha: is only read with generator_function: entmax",
    ),
}
REPETITIONS = {
    "twice with two values": (
        "rnn_size: 3\nrnn_size: 4",
        "line 3: .*'rnn_size' is given twice.* differs .* line 2",
    ),
    "twice with two types": ("rnn_size: 1\nrnn_size: true", "'rnn_size' is given twice"),
    "twice by two names": (
        "hidden_size: 3\nrnn_size: 4",
        "rnn_size: is the same option as hidden_size here",
    ),
}
FILES = {
    "not YAML": ("rnn_size: [3", "line 2: not valid YAML"),
    "too large": ("# " + "x" * (1 << 20), "larger than 1,048,576 bytes"),
}
WRONG_FILES = {**NAMES, **VALUES, **REPETITIONS, **FILES}


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.values(), ids=list(WRONG_FILES))
def test_one_line_names_the_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    """If an option is wrong, the message names its key, too."""
    assert "c.yaml" in refusal(lambda: read_training(tmp_path, text), message)


WRONG_FLAGS = {
    "a misspelt name": (
        "-rnn_siz 3",
        "command line: -rnn_siz: no such option; did you mean 'rnn_size'",
    ),
    "no value": ("-rnn_size", "-rnn_size: expected one value, got 0"),
    "two values": ("-overwrite true rubbish", "-overwrite: expected one value, got 2"),
    "a list in two flags": ("-dropout 0 -dropout 1", "name all values after one -dropout"),
    "a value without a flag": ("file.yaml", "does not follow an option"),
    "a missing file": ("-config nothing.yaml", r"no such file: nothing.yaml \(searched in "),
    "a folder as the file": ("-config /dev", "/dev: Is a directory"),
    "a value that is not YAML": ("-data {c:1,c:[}", "-?data: line 1: not valid YAML"),
    "a flag of another command": (
        "-beam_size 3",
        "-beam_size: no such option; onmt-entmax translate has it",
    ),
    "a flag of another command, which OpenNMT-py lacks": (
        "-search exact",
        "-search: no such option; onmt-entmax translate has it",
    ),
    "a required option is missing": (
        "-layers 1",
        "command line: data: this option is required; give -data, or -config FILE",
    ),
}


@pytest.mark.parametrize(("flags", "message"), WRONG_FLAGS.values(), ids=list(WRONG_FLAGS))
def test_one_line_names_the_wrong_flag(flags: str, message: str) -> None:
    refusal(lambda: read_options(training_options(), flags.split()), message)


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400], ids=["large", "small"])
def test_a_number_beyond_all_floats_is_refused_in_one_line(tmp_path: Path, number: str) -> None:
    """The option has no range; it is refused whatever its value is."""
    text = f"lambda_align: {number}"
    refusal(lambda: read_training(tmp_path, text), "lambda_align: not supported")
