"""Options of `translate` become models, files and the task of a search."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from onmt_entmax.options.translate import translation_setup
from onmt_entmax.options.translate_setup import TranslationSetup
from onmt_entmax.report.writers import OutputForm
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from tests.options.translations import MODELS, OUTPUT, required_flags, translation_with
from tests.toy import write_config

Translate = Callable[[str], TranslationSetup]


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    """A function from flags to the setup of a translation by `MODELS` from a file to `OUTPUT`."""
    return partial(translation_with, tmp_path)


def test_without_flags_the_search_is_the_default_one(translate: Translate) -> None:
    assert translate("").task == SearchTask()


def test_without_flags_the_outputs_have_the_default_form(translate: Translate) -> None:
    assert translate("").form == OutputForm()


def test_without_flags_sixty_four_sentences_are_searched_on_the_cpu(translate: Translate) -> None:
    setup = translate("")
    assert (setup.batch_size, setup.gpu) == (64, None)


def test_without_flags_the_transforms_are_those_of_the_training(translate: Translate) -> None:
    assert translate("").texts.transforms is None


def test_all_named_models_translate(translate: Translate) -> None:
    assert translate("").models == tuple(map(Path, MODELS))


def test_the_transforms_of_the_training_are_left_out_by_a_flag_without_names(
    translate: Translate,
) -> None:
    assert translate("-transforms").texts.transforms == ()


def test_a_gpu_is_chosen_by_its_number(translate: Translate) -> None:
    assert translate("-gpu 0").gpu == 0


def test_n_best_is_searched_for_and_written(translate: Translate) -> None:
    setup = translate("-n_best 3")
    assert (setup.task.config.n_best, setup.form.n_best) == (3, 3)


def test_alignments_stand_beside_the_translations(translate: Translate, tmp_path: Path) -> None:
    assert translate("-report_align").outputs.alignments == tmp_path / f"{OUTPUT}.align"


def test_a_summary_stands_beside_the_report(translate: Translate, tmp_path: Path) -> None:
    outputs = translate(f"-exactness_report {tmp_path / 'report.jsonl'}").outputs
    assert outputs.summary == tmp_path / "report.jsonl.summary.json"


def test_a_named_output_is_not_the_default_one(translate: Translate) -> None:
    assert not translate("").outputs.is_default


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


# --- the YAML file of a training ---


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    """The file of a training with 16 sentences a batch, the one option that `translate` reads."""
    return write_config(tmp_path, batch_size=16, seed=None)


@pytest.fixture
def from_file(tmp_path: Path, training_file: Path) -> TranslationSetup:
    """The setup of a translation that reads the file of a training."""
    return translation_setup(["-config", str(training_file), *required_flags(tmp_path)])


def test_a_translation_reads_its_options_in_the_file_of_a_training(
    from_file: TranslationSetup,
) -> None:
    assert from_file.batch_size == 16


def test_a_note_names_all_other_options_in_the_file_of_a_training(
    training_file: Path, from_file: TranslationSetup
) -> None:
    others = sorted(yaml.safe_load(training_file.read_text()).keys() - {"batch_size"})
    (note,) = from_file.notes
    assert note == f"without effect here: {', '.join(others)}"
