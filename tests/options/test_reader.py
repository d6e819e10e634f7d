"""Strict reading of options: types and flags, and one line for each error."""

import pytest

from onmt_entmax.options.reader import (
    OptionError,
    Options,
    canonical,
    read_options,
    read_yaml,
    register,
)
from onmt_entmax.options.support import (
    REFUSED_IN_TRAINING,
    REFUSED_IN_TRANSLATION,
    WITHOUT_EFFECT,
)
from onmt_entmax.options.train import training_parser, training_setup
from onmt_entmax.options.transforms import transform_option_names
from onmt_entmax.options.translate import translation_parser, translation_setup
from tests.toy import write_config


def read(tmp_path, text: str, *flags: str):
    path = tmp_path / "c.yaml"
    path.write_text("data: {c: {path_src: a, path_tgt: b}}\n" + text)
    return read_options(training_parser(), ["-config", str(path), *flags])


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("rnn_size: 32", "rnn_size", 32),
        ("learning_rate: 1e-3", "learning_rate", 0.001),
        ("learning_rate: 2", "learning_rate", 2.0),
        ("dropout: 0.1", "dropout", [0.1]),
        ("dropout: [0.1, 0.2]", "dropout", [0.1, 0.2]),
        ("position_encoding: true", "position_encoding", True),
        ("position_encoding: 'true'", "position_encoding", True),
        ("overwrite: False", "overwrite", False),
        ("generator_function: entmax15", "generator_function", "entmax15"),
        ("optim: adam", "optim", "adam"),
        ("gpu_ranks: [0, 1]", "gpu_ranks", [0, 1]),
        ("gpu_ranks: []", "gpu_ranks", []),
        ("tgt_vocab: null", "tgt_vocab", None),
        ("", "layers", -1),
    ],
)
def test_values_take_the_type_of_their_option(tmp_path, text, name, value) -> None:
    result = read(tmp_path, text)[name]
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        (["-rnn_size", "8"], "rnn_size", 8),
        (["--rnn_size=8"], "rnn_size", 8),
        (["-dropout", "0.1", "0.3"], "dropout", [0.1, 0.3]),
        (["-position_encoding"], "position_encoding", True),
        (["-position_encoding", "false"], "position_encoding", False),
        (["-seed", "-1"], "seed", -1),
        (["-train_steps", "1e5"], "train_steps", 100_000),
        (["-src_vocab_size", "9007199254740993"], "src_vocab_size", 9007199254740993),
    ],
)
def test_flags_win_over_the_file(tmp_path, flags, name, value) -> None:
    text = "rnn_size: 4\ndropout: 0.2\nposition_encoding: true\nseed: 5"
    options = read(tmp_path, text, *flags)
    assert options[name] == value
    assert options.origin[name] == "command line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnn_siz: 3", r"c.yaml: rnn_siz: no such option; did you mean 'rnn_size'\?"),
        ("base: pilot.yaml", "c.yaml: base: no such option; a matrix has it"),
        ("rnn_size: big", "c.yaml: rnn_size: expected a whole number, not 'big'"),
        ("rnn_size: 2.5", "rnn_size: expected a whole number"),
        ("rnn_size: [2]", "rnn_size: expected a whole number"),
        ("rnn_size: true", "rnn_size: expected a whole number"),
        ("learning_rate: fast", "learning_rate: expected a number"),
        ("position_encoding: maybe", "position_encoding: expected true or false"),
        ("rnn_type: lstm", "rnn_type: 'lstm' is not one of LSTM, GRU"),
        ("generator_function: entmax1", "did you mean 'entmax15'"),
        ("dropout: []", "dropout: expected at least one value"),
        ("rnn_size: 3\nrnn_size: 4", "line 3: not valid YAML: the key 'rnn_size' is given twice"),
        ("rnn_size: [3", "line 2: not valid YAML"),
        ("brnn: true", "brnn: deprecated"),
        ("save_model: 2024-13-45", "not valid YAML: month must be"),
        ("save_model: {{ x }}", "line 2: not valid YAML: a key must be a word or a number"),
    ],
)
def test_one_line_names_file_and_key(tmp_path, text, message) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "c.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-rnn_siz", "3"], "-rnn_siz: no such option; did you mean 'rnn_size'"),
        (["-train_", "3"], "-train_: no such option; did you mean 'train_from'"),
        (["-keep", "3"], "-keep: no such option; did you mean 'keep_checkpoint'"),
        (["-beam_size", "3"], "-beam_size: no such option; onmt-entmax translate has it"),
        (["-rnn_size"], "expected one value, got 0"),
        (["-rnn_size", "3", "4"], "expected one value, got 2"),
        (["-overwrite", "true", "rubbish"], "-overwrite: expected one value, got 2"),
        (["file.yaml"], "does not follow an option"),
        (["-config"], "-config: expected one value, got 0"),
        (["-data", "{c: [}"], "-data: line 1: not valid YAML"),
        (["-data", "{c: 1, c: 2}"], "the key 'c' is given twice"),
    ],
)
def test_wrong_flags(flags, message) -> None:
    with pytest.raises(OptionError, match=message):
        read_options(training_parser(), flags)


def test_merge_keys_are_read(tmp_path) -> None:
    nested = "base: &b {x: 1}\nouter: {inner: &i {<<: *b, x: 2}}\ntop: {<<: *i}\n"
    (tmp_path / "nested.yaml").write_text(nested)
    assert read_yaml(str(tmp_path / "nested.yaml"))["top"] == {"x": 2}
    text = "data:\n  a: &a {path_src: x, weight: 1}\n  b:\n    <<: *a\n    weight: 2\n"
    (tmp_path / "merged.yaml").write_text(text)
    content = read_yaml(str(tmp_path / "merged.yaml"))
    assert content["data"]["b"] == {"path_src": "x", "weight": 2}


def test_files_that_cannot_be_read(tmp_path) -> None:
    parser = training_parser()
    with pytest.raises(OptionError, match=r"nothing.yaml: No such file"):
        read_options(parser, ["-config", "nothing.yaml"])
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(OptionError, match="expected `key: value`"):
        read_options(parser, ["-config", str(tmp_path / "list.yaml")])
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(OptionError, match="not valid UTF-8"):
        read_options(parser, ["-config", str(tmp_path / "bytes.yaml")])


BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 20))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"line \d+: not valid YAML: too many values"),
        ("a: &a {<<: *a}", "a: no such option"),
        ("a: " + "[" * 1000, "line 1: not valid YAML: nested too deeply"),
        ("a: " + "9" * 20_000, "line 1: not valid YAML: a word is too long"),
        ("a: 0x" + "f" * 9000, "c.yaml: a: no such option"),
        ("rnn_size: 0x" + "f" * 9000, "rnn_size: expected a whole number, not this int"),
        ("position_encoding: 0x" + "f" * 9000, "position_encoding: expected true or false, not th"),
        ("0x" + "f" * 900 + ": 1", r"c.yaml: \d+\.\.\.: no such option"),
        ('save_model: "a\\0b"', "save_model: 'a.x00b' has a null character"),
        ("rnn_type: " + "x" * 9000, r"xx\.\.\. is not one of LSTM, GRU"),
        ("# " + "x" * (1 << 22), "larger than 4,194,304 bytes"),
        ("rnn_size: \0", "not valid YAML"),
    ],
    ids=lambda text: text[:20],
)
def test_hostile_configurations_end_in_a_short_line(tmp_path, text, message) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(OptionError, match=message) as caught:
        read_options(training_parser(), ["-config", str(path)])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_required_option_is_asked_for(tmp_path) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(training_parser(), [])
    said = "data: this option is required; give -data, or -config FILE with it"
    assert str(caught.value) == f"command line: {said}"
    path = tmp_path / "c.yaml"
    path.write_text("layers: 1")
    with pytest.raises(OptionError, match=r"c\.yaml: data: this option is required$"):
        read_options(training_parser(), ["-config", str(path)])


@pytest.mark.parametrize("command", ["training", "translation"])
def test_no_option_of_opennmt_is_ignored(command, tmp_path, monkeypatch) -> None:
    """Every option is read, refused with a reason, or listed as without effect."""
    read: set[str] = set()
    original = Options.__getitem__
    monkeypatch.setattr(
        Options, "__getitem__", lambda self, name: (read.add(name), original(self, name))[1]
    )
    source = tmp_path / "source"
    source.write_text("a\n")
    if command == "training":
        parser, refused = training_parser(), REFUSED_IN_TRAINING
        sizes = {"rnn_size": None, "enc_rnn_size": 8, "dec_rnn_size": 8}
        training_setup(
            [
                "-config",
                str(write_config(tmp_path, **sizes, tensorboard=True, tensorboard_log_dir="x")),
            ]
        )
    else:
        parser, refused = translation_parser(), REFUSED_IN_TRANSLATION
        translation_setup(["-model", "m", "-src", str(source)])
    known = {canonical(action): action for action in register(parser).values()}
    deprecated = {name for name, a in known.items() if type(a).__name__ == "DeprecateAction"}
    accounted = {*refused, *WITHOUT_EFFECT, *transform_option_names(), *deprecated, "config"}
    assert set(known) - accounted <= read
    assert not read & set(refused), "an option is read and refused"
