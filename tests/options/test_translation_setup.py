"""Options of `translate`: the task that they become, and combinations that are refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.options.translate import TranslationSetup, translation_setup
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from tests.toy import write_config

Translate = Callable[[str], TranslationSetup]


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    """Return the setup of a translation by two models, of further flags."""
    (tmp_path / "s").write_text("a\n")
    arguments = ["-model", "m", "n", "-src", str(tmp_path / "s"), "-output", str(tmp_path / "o")]
    return lambda flags: translation_setup([*arguments, *flags.split()])


def test_without_flags_all_is_as_by_default(translate: Translate) -> None:
    read = translate("")
    assert read.task == SearchTask()
    assert [str(model) for model in read.models] == ["m", "n"]
    assert (read.batch_size, read.gpu, read.transforms, read.n_best) == (64, None, None, 1)


def test_transforms_without_names_are_none(translate: Translate) -> None:
    assert translate("-transforms").transforms == ()


def test_a_gpu_is_chosen_by_its_number(translate: Translate) -> None:
    assert translate("-gpu 0").gpu == 0


def test_n_best_is_searched_for_and_written(translate: Translate) -> None:
    read = translate("-n_best 3")
    assert (read.task.config.n_best, read.n_best) == (3, 3)


@pytest.mark.parametrize(
    ("flags", "task"),
    [
        pytest.param(
            "-length_penalty wu -alpha 0.6 -coverage_penalty summary -beta 0.2",
            SearchTask(
                SearchConfig(
                    penalties=Penalties(
                        length_penalty="wu", alpha=0.6, coverage_penalty="summary", beta=0.2
                    )
                )
            ),
            id="penalties",
        ),
        pytest.param(
            "-length_reward 0.5 -length_ratio 1.5 -coverage_penalty summary -beta 0.2",
            SearchTask(
                SearchConfig(
                    penalties=Penalties(
                        coverage_penalty="summary", beta=0.2, length_reward=0.5, length_ratio=1.5
                    )
                )
            ),
            id="a length reward",
        ),
        pytest.param(
            "-beam_size 7 -stop optimal -ban_unk_token -max_length 9 -min_length 2",
            SearchTask(
                SearchConfig(
                    beam_size=7,
                    max_length=9,
                    stop="optimal",
                    constraints=Constraints(min_length=2),
                ),
                ban_unknown=True,
            ),
            id="a beam search under constraints",
        ),
        pytest.param(
            "-search enumerate -mass 0.9",
            SearchTask(SearchConfig(n_best=0), method="enumerate", mass=0.9),
            id="a list of all outputs",
        ),
        pytest.param(
            "-search exact -budget 77",
            SearchTask(method="exact", budget=Budget(expansions=77)),
            id="an exact search",
        ),
    ],
)
def test_flags_become_a_search_task(translate: Translate, flags: str, task: SearchTask) -> None:
    assert translate(flags).task == task


@pytest.mark.parametrize(
    ("flags", "sampling"),
    [
        pytest.param(
            "-random_sampling_topk 3 -n_best 2 -beam_size 1 -length_penalty none",
            Sampling(topk=3),
            id="top k, and options that change no sampling",
        ),
        pytest.param(
            "-random_sampling_topp 0.5 -seed 4", Sampling(topp=0.5, seed=4), id="top p, a seed"
        ),
    ],
)
def test_flags_become_random_sampling(translate: Translate, flags: str, sampling: Sampling) -> None:
    assert translate(flags).task.sampling == sampling


SEARCHES_REFUSED = [
    ("-search enumerate -beam_size 7", "beam_size: is only read with search: beam or search:"),
    ("-search exact -stop first", "stop: first goes with search: beam"),
    ("-budget 5", "budget: is only read with search: exact or search: enumerate or verify"),
    ("-mass 0.5", "mass: is only read with search: enumerate"),
    ("-search enumerate -length_penalty avg", "search: enumerate lists by probability"),
    ("-mbr chrf -search exact", "mbr: goes with search: beam or enumerate"),
    ("-mbr chrf -length_penalty avg", "mbr: is by probability"),
    ("-abstain 1.5", "abstain: must be a number from 0 to 1"),
    ("-min_length 101", "min_length: is above max_length, 100"),
]
PENALTIES_REFUSED = [
    ("-length_reward 1 -length_penalty avg", "length_reward: does not go with length_penalty"),
    ("-length_reward -1", "length_reward: must be a number from 0 to 1,000"),
    ("-length_reward 1 -length_ratio 0", "length_ratio: must be above 0 and at most 1,000"),
    ("-length_ratio 2", "length_ratio: is only read with length_reward"),
    ("-length_reward 1 -mbr chrf", "mbr: is by probability"),
    ("-length_penalty wu -alpha 900 -max_length 100000", "alpha: too large"),
]
SAMPLING_REFUSED = [
    ("-abstain 0.5 -random_sampling_topk -1", "abstain: goes with a search"),
    ("-random_sampling_topk 3 -min_length 2", "min_length: goes with a search"),
    ("-random_sampling_topk 3 -stop first", "stop: goes with a search"),
    ("-random_sampling_topk 3 -length_reward 1", "length_reward: goes with a search"),
    ("-random_sampling_topp 0.5 -verify", "verify: goes with a search"),
    ("-random_sampling_topk 3 -search exact", "search: goes with a search"),
    ("-random_sampling_topk 3 -ban_unk_token", "ban_unk_token: goes with a search"),
    ("-random_sampling_topk 3 -constraint_regex a", "constraint_regex: goes with a search"),
    ("-random_sampling_topk 3 -mbr chrf", "mbr: goes with a search"),
    ("-random_sampling_topk 3 -replace_unk", "replace_unk: goes with a search"),
]
FILES_AND_OUTPUTS_REFUSED = [
    ("-constraint_regex (", "constraint_regex: character 1: '(' is not closed"),
    ("-constraints none", "constraints: no such file: none"),
    ("-constraints -", "constraints: - is no file, and the standard input cannot be read"),
    ("-tgt_prefix", "tgt_prefix: is only read with tgt"),
    ("-transforms bpee", "not 'bpee'; did you mean 'bpe'?"),
    ("-output /dev/stdout -report_align", "report_align: needs an output file"),
    ("-train_steps 5", "-train_steps: no such option; onmt-entmax train has it"),
]


@pytest.mark.parametrize(
    ("flags", "message"),
    [*SEARCHES_REFUSED, *PENALTIES_REFUSED, *SAMPLING_REFUSED, *FILES_AND_OUTPUTS_REFUSED],
)
def test_flags_that_exclude_each_other_are_refused_in_one_line(
    translate: Translate, flags: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        translate(flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
            "-tgt s", "for its probabilities: onmt-entmax score -model m n -src", id="targets"
        ),
    ],
)
def test_a_note_names_flags_without_effect_and_those_that_mean_something_else(
    translate: Translate, flags: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = translate(flags).notes
    assert note in line


def test_the_longest_output_may_have_its_old_name(translate: Translate) -> None:
    assert translate("-max_sent_length 20").task.config.max_length == 20


def test_a_gpu_without_a_number_is_the_first(translate: Translate) -> None:
    assert translate("-gpu -beam_size 2").gpu == 0


def test_a_batch_of_tokens_is_one_of_sentences(translate: Translate) -> None:
    default = translate("").batch_size
    assert translate("-batch_type tokens -batch_size 4096").batch_size == default


def test_targets_are_no_prefixes(
    translate: Translate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert translate("-tgt s").prefixes is None


def test_a_yaml_file_of_another_command_may_be_shared(tmp_path: Path) -> None:
    mappings = {"generator_function": None, "global_attention_function": None}
    config = write_config(tmp_path, batch_size=16, **mappings)
    (tmp_path / "s").write_text("a\n")
    flags = ["-model", "m", "-src", str(tmp_path / "s"), "-output", str(tmp_path / "o")]
    read = translation_setup(["-config", str(config), *flags])
    assert read.batch_size == 16
    assert "without effect here: data, dropout, encoder_type" in read.notes[0]
