"""Every numeric option has a range, and a value beyond it ends in one line."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import canonical, register
from onmt_entmax.options.support import (
    REFUSED_IN_TRAINING,
    REFUSED_IN_TRANSLATION,
    RULES,
    WITHOUT_EFFECT,
)
from onmt_entmax.options.train import training_parser, training_setup
from onmt_entmax.options.translate import translation_parser, translation_setup
from tests.toy import write_corpus

ABSURD = ["nan", "inf", "-inf", "-1", "0", "1e30", "1000000000000"]

# Absurd values that are accepted, and why.
NOT_GIVEN = "OpenNMT-py's `not given`, or `all`, or `none`"
LIMIT = "a limit that is never reached costs nothing"
OFF = "turns it off, or begins at once"
ACCEPTED = {
    "-1": {
        NOT_GIVEN: "word_vec_size layers rnn_size seed keep_checkpoint gpu src_subword_nbest "
        "tgt_subword_nbest replace_length random_sampling_topk",
    },
    "0": {
        OFF: "src_words_min_frequency tgt_words_min_frequency switchout_temperature "
        "tokendrop_temperature tokenmask_temperature src_subword_nbest tgt_subword_nbest "
        "src_subword_alpha tgt_subword_alpha src_vocab_threshold tgt_vocab_threshold "
        "permute_sent_ratio rotate_ratio insert_ratio random_ratio mask_ratio "
        "max_relative_positions accum_steps early_stopping adagrad_accumulator_init max_grad_norm "
        "dropout attention_dropout dropout_steps adam_beta1 adam_beta2 label_smoothing "
        "average_decay start_decay_steps num_workers attention_warmup_steps valid_decode_size "
        "valid_loss_size alpha beta min_length block_ngram_repeat param_init input_feed "
        "random_sampling_topk random_sampling_topp",
        "a number of a thing": "gpu gpu_ranks seed replace_length",
    },
    "1000000000000": {
        LIMIT: "src_words_min_frequency tgt_words_min_frequency src_seq_length_trunc "
        "tgt_seq_length_trunc src_seq_length tgt_seq_length src_vocab_threshold "
        "tgt_vocab_threshold save_checkpoint_steps keep_checkpoint accum_steps valid_steps "
        "train_steps early_stopping dropout_steps average_every start_decay_steps decay_steps "
        "warmup_steps report_every attention_warmup_steps train_epochs valid_epochs "
        "valid_decode_size valid_loss_size budget",
    },
}
# Options that need others, which are then given too.
TOGETHER = {
    "attention_warmup_steps": ["-global_attention_function", "entmax15"],
    "global_attention_alpha": ["-global_attention_function", "entmax"],
    "generator_alpha": ["-generator_function", "entmax"],
    "input_feed": ["-layers", "2"],
    "enc_rnn_size": ["-dec_rnn_size", "500"],
    "budget": ["-search", "exact"],
    "mass": ["-search", "enumerate"],
    "random_sampling_temp": ["-random_sampling_topk", "5"],
    "alpha": ["-length_penalty", "wu"],
    "beta": ["-coverage_penalty", "wu"],
    "early_stopping": [],
}
# The number is right alone, and a combination is refused.
COMBINATIONS = {("beta", "0"): "coverage_penalty: does nothing without beta"}


def numeric(parser: argparse.ArgumentParser, refused: dict[str, str]) -> list[str]:
    """Return the options of a parser that take numbers and are not refused altogether."""
    actions = dict.fromkeys(register(parser).values())
    names = [canonical(action) for action in actions if action.type in (int, float)]
    return [name for name in names if name not in refused and name not in WITHOUT_EFFECT]


TRAINING = numeric(training_parser(), REFUSED_IN_TRAINING)
TRANSLATION = numeric(translation_parser(), REFUSED_IN_TRANSLATION)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[list[str]], object]]:
    folder = tmp_path_factory.mktemp("data")
    corpora = {name: write_corpus(folder, name, 5, 0) for name in ("train", "valid")}
    train = ["-data", str(corpora), "-save_model", str(folder / "run")]
    source = corpora["train"]["path_src"]
    translate = ["-model", "m", "-src", source, "-output", str(folder / "o")]
    return {
        "train": lambda more: training_setup([*train, *more]),
        "translate": lambda more: translation_setup([*translate, *more]),
    }


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize(
    ("command", "name"),
    [("train", name) for name in TRAINING] + [("translate", name) for name in TRANSLATION],
)
def test_absurd_numbers_are_refused_in_one_line(commands, command, name, value) -> None:
    arguments = [f"-{name}={value}", *TOGETHER.get(name, [])]
    accepted = name in " ".join(ACCEPTED.get(value, {}).values()).split()
    if accepted and (name, value) not in COMBINATIONS:
        commands[command](arguments)
        return
    expected = COMBINATIONS.get((name, value), f"{name}: ")
    with pytest.raises(UserError) as caught:
        commands[command](arguments)
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert len(message) < 250


def test_every_numeric_option_has_a_finite_range() -> None:
    for name in {*TRAINING, *TRANSLATION}:
        rule = RULES[name]
        assert -(10**13) < rule.low <= rule.high < 10**13, name


def test_the_table_names_no_option_that_is_gone() -> None:
    accepted = " ".join(names for reasons in ACCEPTED.values() for names in reasons.values())
    assert set(accepted.split()) <= {*TRAINING, *TRANSLATION}
    assert set(TOGETHER) | {name for name, _ in COMBINATIONS} <= {*TRAINING, *TRANSLATION}


def test_a_folder_of_nothing_is_no_folder(commands, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="save_model: must name a folder"):
        commands["train"](["-save_model", " "])
