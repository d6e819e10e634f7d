"""Notes of `translate` on options without effect, and on others with another meaning."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from onmt_entmax.options.translate_setup import TranslationSetup
from tests.options.translations import MODELS, SOURCE, translation_with

Translate = Callable[[str], TranslationSetup]


@pytest.fixture
def translate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Translate:
    """A function from flags to the setup of a translation of a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    return partial(translation_with, tmp_path)


# --- notes ---

IGNORED = "without effect here: "


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        pytest.param("-alpha 1", "alpha (needs length_penalty: wu)", id="alpha"),
        pytest.param(
            "-ignore_when_blocking a",
            "ignore_when_blocking (needs block_ngram_repeat)",
            id="ignored tokens without blocking",
        ),
        pytest.param(
            "-phrase_table none", "phrase_table (needs replace_unk)", id="a table without unknowns"
        ),
        pytest.param(
            "-beam_size 1 -random_sampling_temp 2",
            "random_sampling_temp (needs random_sampling_topk or random_sampling_topp)",
            id="a temperature without sampling",
        ),
        pytest.param(
            "-random_sampling_topk 3 -length_penalty avg",
            f"{IGNORED}length_penalty (of a search)",
            id="a penalty of samples",
        ),
        pytest.param(
            "-random_sampling_topk 3 -beam_size 7",
            "beam_size in random sampling as n_best 1",
            id="a beam of samples",
        ),
        pytest.param(
            "-verbose -report_time -attn_debug -shard_size 0 -fp32 -dump_beam b -log_file l",
            f"{IGNORED}verbose, report_time, attn_debug, shard_size, fp32, dump_beam,",
            id="flags without effect",
        ),
        pytest.param(
            "-int8 -ratio 0.5",
            "int8 as 32-bit floats, ratio as a search that stops when",
            id="int8 and ratio",
        ),
        pytest.param(
            "-coverage_penalty wu -beta 2 -stepwise_penalty",
            "stepwise_penalty as a coverage penalty",
            id="a stepwise penalty",
        ),
        pytest.param("-max_sent_length 20", "max_sent_length as max_length", id="an old name"),
        pytest.param(
            "-gpu -beam_size 2", "-gpu without a value as -gpu 0", id="a GPU without a number"
        ),
        pytest.param(
            "-batch_type tokens -batch_size 4096",
            "batch_type tokens as batch_size 64 sentences",
            id="a batch of tokens",
        ),
        pytest.param(
            f"-tgt {SOURCE}",
            f"for its probabilities: onmt-entmax score -model {' '.join(MODELS)} -src",
            id="targets",
        ),
    ],
)
def test_a_note_names_flags_without_effect_and_those_that_mean_something_else(
    translate: Translate, flags: str, note: str
) -> None:
    (line,) = translate(flags).notes
    assert note in line


# --- values of options with another meaning ---


def test_the_longest_output_may_have_its_old_name(translate: Translate) -> None:
    assert translate("-max_sent_length 20").task.config.max_length == 20


def test_a_gpu_without_a_number_is_the_first(translate: Translate) -> None:
    assert translate("-gpu -beam_size 2").gpu == 0


def test_a_batch_of_tokens_is_one_of_sentences(translate: Translate) -> None:
    default = translate("").batch_size
    assert translate("-batch_type tokens -batch_size 4096").batch_size == default


def test_targets_are_not_prefixes(translate: Translate) -> None:
    assert translate(f"-tgt {SOURCE}").inputs.prefixes is None
