"""Defaults of the options of `train`: their fields and docs/options.md have the same."""

import dataclasses
import re
from pathlib import Path

import pytest

from onmt_entmax import config
from onmt_entmax.options.train import TrainingSetup, training_options, training_setup
from tests.commands import ROOT
from tests.toy import write_corpus

# --- a training with required options alone --------------------------------------------------


@pytest.fixture
def setup(tmp_path: Path) -> TrainingSetup:
    """The setup of a training with required options alone."""
    corpora = {"c": write_corpus(tmp_path, "train", size=2, seed=1)}
    return training_setup(["-data", str(corpora), "-save_model", "run"])


def test_each_field_has_the_default_of_its_option(setup: TrainingSetup) -> None:
    parts = (setup.run, setup.data, setup.vocabulary, setup.model, setup.training, setup.validation)
    differing = {
        field.name: getattr(part, field.name)
        for part in parts
        for field in dataclasses.fields(part)
        if field.default is not dataclasses.MISSING
        and field.name != "save_model"
        and getattr(part, field.name) != field.default
    }
    assert differing == {}


def test_the_optimiser_is_the_default_one(setup: TrainingSetup) -> None:
    assert setup.training.optimizer == config.OptimizerConfig()


def test_the_record_also_has_defaults(setup: TrainingSetup) -> None:
    assert setup.record["adam_beta1"] == 0.9


# --- the documents ---------------------------------------------------------------------------

OPTIONS = training_options()


def documented_defaults() -> dict[str, str]:
    """Return the defaults of `train` that docs/options.md states, as texts.

    Its rows are such as "| `a`, `b` | 1, 2 | ... |"; a single value is that of all options.
    """
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    ours = text[text.index("## Our options") : text.index("### Options of `translate`")]
    defaults: dict[str, str] = {}
    for keys, values in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \| .* \|$", ours, re.MULTILINE):
        names = re.findall(r"`(\w+)`", keys)
        documented = [value.strip("`") for value in values.strip().split(", ")]
        if len(documented) == 1:
            documented *= len(names)
        defaults.update(zip(names, documented, strict=True))
    # A default may be another option's value, or be described in the text.
    return {name: value for name, value in defaults.items() if value and value not in OPTIONS}


def as_documented(default: object) -> str:
    """Return a default as docs/options.md writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, int | float) else str(default)


def test_the_documented_defaults_are_those_of_the_options() -> None:
    documented = documented_defaults()
    # Entries of several options, with values that are numbers and words, were found.
    assert {"alpha_init_mean", "alpha_init_std", "valid_bleu_tokenize"} <= documented.keys()
    assert documented == {name: as_documented(OPTIONS[name].default) for name in documented}
