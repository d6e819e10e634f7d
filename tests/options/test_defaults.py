"""Each option has one default, that of its configuration."""

import dataclasses
import inspect
from pathlib import Path

import pytest

from onmt_entmax import entmax
from onmt_entmax.data.corpus import DataConfig
from onmt_entmax.data.vocabulary import VocabularyConfig
from onmt_entmax.network import ModelConfig
from onmt_entmax.nn.transformer import KINDS
from onmt_entmax.options.reader import canonical, register
from onmt_entmax.options.train import TrainingSetup, training_parser, training_setup
from onmt_entmax.options.translate import translation_parser, translation_setup
from onmt_entmax.search import SearchTask
from onmt_entmax.train import OptimizerConfig, RunConfig, TrainingConfig
from onmt_entmax.train.evaluation import ValidationConfig


@pytest.fixture
def plain(tmp_path: Path) -> TrainingSetup:
    """Return the setup of a training with no options but its data and folder."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
    data = f"{{c: {{path_src: {tmp_path / 'a'}, path_tgt: {tmp_path / 'b'}}}}}"
    return training_setup(["-data", data, "-save_model", "run"])


def test_a_training_without_options_has_the_defaults_of_its_configurations(
    plain: TrainingSetup,
) -> None:
    given = {"corpora": plain.data.corpora, "transform_options": plain.data.transform_options}
    assert plain.run == RunConfig("run")
    assert plain.data == DataConfig(valid=None, **given)
    assert plain.vocabulary == VocabularyConfig()
    assert plain.model == ModelConfig()
    assert plain.training == TrainingConfig(OptimizerConfig())
    assert plain.validation == ValidationConfig()


def test_a_translation_without_options_has_the_defaults_of_a_search(tmp_path: Path) -> None:
    (tmp_path / "src").write_text("x\n")
    made = translation_setup(["-model", "m", "-src", str(tmp_path / "src"), "-output", "o"])
    assert made.task == SearchTask()
    assert made.n_best == made.task.config.n_best
    assert made.exactness_report is made.prefixes is made.gpu is made.unknown is None


def test_options_of_the_same_name_have_the_default_of_the_field() -> None:
    known = {canonical(action): action.default for action in register(training_parser()).values()}
    sizes = {"rnn_size", "generator_alpha"}  # see `_model`
    sizes |= {f"{kind}_attention_alpha" for kind in ("global", *KINDS)}
    converted = {"input_feed": bool, "seed": lambda value: max(value, 0)}
    checked = 0
    for kind in (DataConfig, VocabularyConfig, ModelConfig, TrainingConfig, ValidationConfig):
        for field in dataclasses.fields(kind):
            if field.name not in known or field.name in sizes:
                continue
            default = known[field.name]
            default = tuple(default) if isinstance(default, list) else default
            if isinstance(field.default, float) and isinstance(default, tuple):
                (default,) = default
            default = converted.get(field.name, lambda value: value)(default)
            assert default == field.default, field.name
            checked += 1
    assert checked > 50


def test_alpha_of_the_option_entmax_is_that_of_the_function() -> None:
    known = register(training_parser())
    default = inspect.signature(entmax).parameters["alpha"].default
    for name in ("generator_alpha", *(f"{kind}_attention_alpha" for kind in ("global", *KINDS))):
        assert known[name].default == default


def test_translation_and_training_agree_on_what_both_have() -> None:
    training, translation = register(training_parser()), register(translation_parser())
    assert translation["max_length"].default == training["max_length"].default
