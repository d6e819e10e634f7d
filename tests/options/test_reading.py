"""Reading options: types, ranges, errors in one line, the help and the schema."""

import dataclasses
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from onmt_entmax import config
from onmt_entmax.cli.main import run
from onmt_entmax.opennmt import train_opts, translate_opts
from onmt_entmax.options import train_table, translate_table
from onmt_entmax.options.declared import options_of, transform_options
from onmt_entmax.options.json_schema import schema
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.result import Options
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.train_table import training_options
from onmt_entmax.options.translate_table import translation_options
from onmt_entmax.options.values import OptionError
from tests.commands import ROOT
from tests.toy import write_corpus

COMMANDS = {"train": training_options(), "translate": translation_options()}
STOCK = {
    "train": options_of(train_opts, {}),
    "translate": options_of(lambda parser: translate_opts(parser, dynamic=True), {}),
}
each_command = pytest.mark.parametrize("command", COMMANDS)


def read(tmp_path: Path, text: str, *flags: str) -> Options:
    """Return the options of training in `c.yaml`, of this text and a corpus, and in flags."""
    path = tmp_path / "c.yaml"
    path.write_text("data: {c: {path_src: a, path_tgt: b}}\n" + text)
    return read_options(COMMANDS["train"], ["-config", str(path), *flags])


def refused(call: Callable[[], object], message: str) -> str:
    """Check that a call ends in a short line, and return it."""
    with pytest.raises(OptionError, match=message) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


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
    options = read(tmp_path, text)
    assert options[name] == value
    assert type(options[name]) is type(value)
    assert options.origin[name] == str(tmp_path / "c.yaml")


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
    options = read(tmp_path, text, *flags.split())
    assert options[name] == value
    assert type(options[name]) is type(value)
    assert options.origin[name] == "command line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnn_siz: 3", r"c.yaml: rnn_siz: no such option; did you mean 'rnn_size'\?"),
        ("rnn_size: big", "c.yaml: rnn_size: must be -1 or a whole number from 1 to .*, not 'big'"),
        ("rnn_size: 2.5", "rnn_size: must be"),
        ("rnn_size: [2]", "rnn_size: must be"),
        ("position_encoding: maybe", "position_encoding: must be true or false, not 'maybe'"),
        ("generator_function: entmax1", "must be one of softmax.*; did you mean 'entmax15'"),
        ("generator_function: tsallis15", "OpenNMT-entmax's tsallis15 is entmax15 here"),
        ("loss_alpha: 1.5", "loss_alpha: no such option; use generator_function: entmax and"),
        ("copy_attn: true", "copy_attn: not supported: copy attention"),
        ("dropout: []", "dropout: expected at least one value"),
        ("save_model: no", "c.yaml: save_model: must be text, not False; put it between quotes"),
        ("save_model: 2024-01-01", "save_model: must be text, not datetime.*between quotes"),
        ('save_model: "a\\0b"', "save_model: must be text, not 'a.x00b'"),
        ("rnn_size: 3\nrnn_size: 4", "line 3: .*'rnn_size' is given twice.* differs .* line 2"),
        ("rnn_size: 1\nrnn_size: true", "'rnn_size' is given twice"),
        ("hidden_size: 3\nrnn_size: 4", "rnn_size: is the same option as hidden_size here"),
        ("encoder_type: ggnn", "not 'ggnn'; graph encoders are not supported"),
        ("model_task: lm", "not 'lm'; language models are not supported"),
        ("gpu_ranks: -1", r"for the CPU, leave it out or write gpu_ranks: \[\]"),
        ("rnn_size: [3", "line 2: not valid YAML"),
        ("0x" + "f" * 900 + ": 1", r"c.yaml: \d+\.\.\.: no such option"),
        ("# " + "x" * (1 << 20), "larger than 1,048,576 bytes"),
        ("a: &a {<<: *a}", "a: no such option"),
        ("generator_alpha: 1.2", "generator_alpha: is only read with generator_function: entmax"),
    ],
)
def test_one_line_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    assert "c.yaml" in refused(lambda: read(tmp_path, text), message)


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
def test_wrong_flags(flags: str, message: str) -> None:
    refused(lambda: read_options(COMMANDS["train"], flags.split()), message)


def test_of_a_flag_that_is_given_twice_the_last_counts(tmp_path: Path) -> None:
    options = read(tmp_path, "", "-layers", "1", "-layers", "2")
    assert options["layers"] == 2


def test_a_flag_that_is_given_twice_is_said(tmp_path: Path) -> None:
    options = read(tmp_path, "", "-layers", "1", "-layers", "2")
    assert options.notes.warnings == [
        "command line: -layers is given twice; the last counts: -layers 2"
    ]


def test_a_flag_that_is_given_twice_with_one_value_is_a_note(tmp_path: Path) -> None:
    options = read(tmp_path, "", "-layers", "2", "--layers=2")
    assert options.notes.lines() == ["given twice, with equal values: -layers"]
    assert not options.notes.warnings


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400], ids=["large", "small"])
def test_a_number_beyond_all_floats_is_refused_in_one_line(tmp_path: Path, number: str) -> None:
    """Of an option without a range, which is refused whatever its value is."""
    refused(lambda: read(tmp_path, f"lambda_align: {number}"), "lambda_align: not supported")


WRONG_IN_THE_FILE = pytest.mark.parametrize(
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


@WRONG_IN_THE_FILE
def test_values_that_a_flag_replaces_are_not_checked(
    tmp_path: Path, name: str, text: str, flags: str, value: object
) -> None:
    options = read(tmp_path, text, *flags.split())
    assert options[name] == value
    assert not options.notes.ignored
    with pytest.raises(OptionError):
        read(tmp_path, text)


def test_a_flag_of_another_name_is_a_note(tmp_path: Path) -> None:
    options = read(tmp_path, "rnn_size: big", "-hidden_size", "32")
    (note,) = options.notes.replaced
    assert "hidden_size" in str(note)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("save_data: x\nn_sample: 10\npool_factor: [odd]\nverbose: false\nbeam_size: 3",
         "without effect here: save_data, n_sample, pool_factor, beam_size"),
        ("dump_samples: true\ntensorboard_log_dir: x\nearly_stopping: 4\nseed:\nlayers: ''",
         "without effect here: dump_samples, seed (empty), layers (empty), "
         "tensorboard_log_dir (needs tensorboard), early_stopping (needs data: valid)"),
        ("src_vocab: a\nseed: 3\nsrc_vocab: a",
         "given twice, with equal values: src_vocab (lines 2 and 4)"),
        ("hidden_size: 8\noptim: fusedadam\nsubword_alpha: 0.1\nbatch_size_multiple: 8",
         "read as OpenNMT-py does not: optim fusedadam as adam, "
         "batch_size_multiple as batches of any size, hidden_size as rnn_size, "
         "subword_alpha as src_subword_alpha and tgt_subword_alpha"),
    ],
)  # fmt: skip
def test_one_line_for_each_kind_of_note(tmp_path: Path, text: str, notes: str) -> None:
    options = read(tmp_path, text)
    assert options.notes.lines() == [notes]
    assert not options.notes.warnings


def test_an_option_without_effect_has_its_default(tmp_path: Path) -> None:
    assert read(tmp_path, "early_stopping: 4")["early_stopping"] == 0


def test_an_empty_value_of_an_option_without_effect_is_not_said(tmp_path: Path) -> None:
    assert not read(tmp_path, "save_data:\nlog_file: ''\ntgt_vocab:").notes.ignored


class TestOneSizeOfBothSides:
    def test_that_replaces_others_is_warned_of(self, tmp_path: Path) -> None:
        options = read(tmp_path, "layers: 3\nenc_layers: 1\ndec_layers: 3")
        (warning,) = options.notes.warnings
        assert "c.yaml: layers: 3 (line 2) replaces enc_layers: 1 (line 3)" in warning

    def test_that_replaces_other_flags_is_warned_of(self, tmp_path: Path) -> None:
        options = read(tmp_path, "", *"-rnn_size 8 -enc_rnn_size 4".split())
        (warning,) = options.notes.warnings
        assert warning.startswith("command line: rnn_size: 8 replaces enc_rnn_size: 4;")

    def test_is_replaced_by_a_later_place(self, tmp_path: Path) -> None:
        assert not read(tmp_path, "layers: 3", "-enc_layers", "1").notes.warnings


# --- every option ----------------------------------------------------------------------------


@each_command
def test_no_option_of_opennmt_is_ignored_in_silence(command) -> None:
    """Each is a field or converted, refused with a reason, or listed as without effect."""
    if command == "train":
        configurations = [
            value for value in vars(config).values() if dataclasses.is_dataclass(value)
        ]
        read_here = train_table.OPTIONS | config.declared(*configurations)
    else:
        read_here = translate_table.OPTIONS
    decided = {*REFUSED, *IGNORED, *NEAREST}
    others = STOCK[command].keys() - {*decided, *transform_options()} - read_here.keys()
    # An option with one possible value has nothing to read.
    assert not {name for name in others if len(COMMANDS[command][name].rule.names) != 1}
    assert not read_here.keys() & decided


def test_training_shares_its_file_with_build_vocab() -> None:
    """Every option of onmt_build_vocab is one of training, or without effect."""
    opts = importlib.import_module("onmt.opts")
    names = options_of(lambda parser: opts.dynamic_prepare_opts(parser, build_vocab_only=True), {})
    assert len(names) > 40
    assert names.keys() <= {*COMMANDS["train"], *IGNORED}


@each_command
def test_stock_options_keep_their_types_and_defaults(command) -> None:
    other_defaults = {"bucket_size", "tensorboard_log_dir"}
    if command == "translate":
        other_defaults.add("batch_size")
    for name, stock in STOCK[command].items():
        option = COMMANDS[command][name]
        if name not in other_defaults:
            assert (option.default or None) == (stock.default or None), name
        if name not in ("data", "input_feed"):
            assert option.rule.kind is stock.rule.kind, name


def test_each_field_has_the_default_of_its_option(tmp_path: Path) -> None:
    corpora = {"c": write_corpus(tmp_path, "train", 2, 1)}
    setup = training_setup(["-data", str(corpora), "-save_model", "run"])
    parts = (setup.run, setup.data, setup.vocabulary, setup.model, setup.training, setup.validation)
    for part in parts:
        for field in dataclasses.fields(part):
            if field.default is not dataclasses.MISSING and field.name != "save_model":
                assert getattr(part, field.name) == field.default, field.name
    assert setup.training.optimizer == config.OptimizerConfig()
    assert setup.record["adam_beta1"] == 0.9


# Options for which 0 means something, though it is not their default; then -1. All other ranges
# refuse them.
ZERO = re.compile(
    ".*(_ratio|_temperature|_alpha|_nbest|_threshold|_frequency|_steps|dropout|beta.?|decay|alpha)$"
    "|(gpu|seed|valid_.*_size|.*_ranks|num_workers|early_stopping|label_smoothing|max_grad_norm"
    "|param_init|length_reward|adagrad.*|max_relative.*|replace_length|min_length|block_.*|random_.*top.)$"
    "|alpha_init_.*"
)
MINUS_ONE = (
    "word_vec_size layers rnn_size seed keep_checkpoint gpu replace_length random_sampling_topk"
)


@each_command
def test_numbers_have_finite_ranges_and_both_ends_are_meant(command) -> None:
    for name, option in COMMANDS[command].items():
        rule = option.rule
        if rule.kind not in (int, float) or name in {*REFUSED, *IGNORED, *NEAREST}:
            continue
        assert -(10**13) < rule.low <= rule.high < 10**13, name
        for value in (float("nan"), float("inf"), 1e30, -200, True, "x", None):
            assert not rule.fits(value), (name, value)
        if not name.endswith(("start_decay_steps", "warmup_steps", "valid_steps")):
            assert rule.fits(0) <= bool(option.default == 0 or ZERO.match(name)), name
        assert rule.fits(-1) <= (name in MINUS_ONE or bool(re.match("alpha_init|.*nbest", name)))


@pytest.mark.parametrize("arguments", [["--schema", "x"], ["-config", "x.yaml", "--schema"]])
@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_schema_takes_no_other_argument(
    command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, arguments, f"onmt-entmax {command}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--schema: stands alone, and prints; write to a file with --schema > FILE" in line


def shipped_files() -> list[Path]:
    """Return the YAML files of trainings in the repository; others are of other programs."""
    paths = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "tests" / "stock").glob("*.yaml")]
    contents = {path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}
    return [path for path, content in contents.items() if isinstance(content.get("data"), dict)]


class TestTheSchemaOfTraining:
    @pytest.fixture
    def validator(self, capsys: pytest.CaptureFixture[str]) -> jsonschema.Draft202012Validator:
        assert run("train", ["--schema"], "onmt-entmax train") == 0
        printed = capsys.readouterr().out
        return jsonschema.Draft202012Validator(json.loads(printed, parse_constant=pytest.fail))

    def test_accepts_the_shipped_files(self, validator: jsonschema.Draft202012Validator) -> None:
        paths = shipped_files()
        assert len(paths) > 15
        for path in paths:
            validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"rnn_siz": 3},
            {"rnn_size": 0},
            {"optim": "adamw"},
            {"dropout": [1.0]},
            {"copy_attn": True},
            {"learning_rate": 0},
            {"save_model": False},
            {"data": {"c": {"path_scr": "a"}}},
            {"data": None},
        ],
        ids=str,
    )
    def test_refuses_what_reading_refuses(
        self, validator: jsonschema.Draft202012Validator, wrong: dict[str, object]
    ) -> None:
        right = {"data": {"c": {"path_src": "a", "path_tgt": "b"}}, "save_model": "run"}
        assert validator.is_valid(right)
        assert not validator.is_valid(right | wrong)


def test_the_schema_of_translation_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema(COMMANDS["translate"]))


def test_the_defaults_are_those_of_the_documents() -> None:
    """Which have entries such as "- `a`, `b` (1, 2): ...", or one value of all."""
    text, compared = (ROOT / "docs" / "options.md").read_text(encoding="utf-8"), 0
    for keys, values in re.findall(r"^- (`[^(:]+`) \(([^)]+)\):", text, re.MULTILINE):
        names, documented = re.findall(r"`(\w+)`", keys), values.strip().split(", ")
        if len(documented) == 1:
            documented *= len(names)
        for name, value in zip(names, documented, strict=True):
            if value and value.strip("`") not in COMMANDS["train"]:  # not another option's value
                default = COMMANDS["train"][name].default
                shown = f"{default:g}" if isinstance(default, (int, float)) else str(default)
                assert shown == value.strip("`"), name
                compared += 1
    assert compared > 20
