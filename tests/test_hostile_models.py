"""Model folders of strangers: wrong configurations and options are refused in one short line."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
import yaml

from onmt_entmax.checkpoint import LoadedModel, load, save
from onmt_entmax.config import ModelConfig, declared
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tests.models import BRNN, TRANSFORMER, VOCABULARIES
from tests.refusals import assert_short_line

Kind = Literal["rnn", "transformer"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    """The folders of a recurrent model and of a Transformer."""
    configs: dict[Kind, ModelConfig] = {"rnn": BRNN, "transformer": TRANSFORMER}
    folders: dict[Kind, Path] = {}
    for kind, config in configs.items():
        folders[kind] = tmp_path_factory.mktemp("models") / kind
        save(folders[kind], build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folders


# --- single values ---------------------------------------------------------------------------

HUGE = 10**400  # no float holds it
# Values of every type that YAML and JSON have.
ODD_VALUES: list[Any] = [
    None, True, -1, 0, 0.5, HUGE, -HUGE, float("nan"), float("inf"), -float("inf"), "", "x" * 5000,
    [], [1], {}, {"a": 1},
]  # fmt: skip
MOST_THAT_FIT = 3  # -1, 0 and 0.5, where any number of ordinary size is allowed
RULES = {name: option.rule for name, option in declared(ModelConfig).items()}
"""What each field of a configuration may be."""
each_field = pytest.mark.parametrize(
    "field", dataclasses.fields(ModelConfig), ids=lambda field: field.name
)


@each_field
def test_a_default_fits_its_rule(field: dataclasses.Field) -> None:
    assert RULES[field.name].fits(field.default)


@each_field
def test_few_odd_values_fit_a_rule(field: dataclasses.Field) -> None:
    fitting = [value for value in ODD_VALUES if RULES[field.name].fits(value)]
    assert len(fitting) <= MOST_THAT_FIT


@each_field
def test_odd_values_that_break_a_rule_are_refused(field: dataclasses.Field) -> None:
    values = [value for value in ODD_VALUES if not RULES[field.name].fits(value)]
    assert values
    for value in values:
        with pytest.raises(UserError) as raised:
            ModelConfig(**{field.name: value})
        assert_short_line(raised.value, f"{field.name}: must be ")


# --- networks --------------------------------------------------------------------------------


class Misfit(NamedTuple):
    """Changes of a configuration after which no network has it, and part of the refusal."""

    kind: Kind
    changes: dict[str, object]
    message: str


MISFITS = {
    "a Transformer as the encoder only": Misfit(
        "rnn", {"encoder_type": "transformer"}, "encoder_type: a Transformer needs"
    ),
    "two directions that share 7 units": Misfit(
        "rnn", {"rnn_size": 7, "encoder_type": "brnn"}, "rnn_size: must be even"
    ),
    "fewer layers in the encoder": Misfit(
        "rnn", {"enc_layers": 1}, "dec_layers: 2 of a recurrent decoder"
    ),
    "a mean of word vectors of another size": Misfit(
        "rnn", {"encoder_type": "mean"}, "src_word_vec_size: must equal rnn_size"
    ),
    "positions in word vectors of size 5": Misfit(
        "rnn", {"position_encoding": True, "src_word_vec_size": 5}, "position_encoding: needs"
    ),
    "shared embeddings of two vocabularies": Misfit(
        "rnn", {"share_embeddings": True}, "share_embeddings: needs one vocabulary"
    ),
    "three heads for 8 units": Misfit("transformer", {"heads": 3}, "heads: must divide rnn_size 8"),
    "more layers than there are weights": Misfit(
        "transformer", {"enc_layers": 3}, "model.safetensors: encoder.transformer.2."
    ),
    "an unknown key of 5,000 letters": Misfit("rnn", {"x" * 5000: 8}, "no such key"),
}


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
def test_a_configuration_that_no_network_has_is_refused(
    models: dict[Kind, Path], tmp_path: Path, misfit: Misfit
) -> None:
    folder = Path(shutil.copytree(models[misfit.kind], tmp_path / "model"))
    content = yaml.safe_load((folder / "config.yaml").read_text())
    content["model"].update(misfit.changes)
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    write_list(folder)
    with pytest.raises(UserError) as raised:
        load(folder)
    assert_short_line(raised.value, str(folder), misfit.message)


# --- options of transforms -------------------------------------------------------------------


class WrongOption(NamedTuple):
    """An option in a model folder, with a value that its transform refuses."""

    transform: str
    name: str
    value: Any
    message: str
    """Part of the refusal."""


WRONG_OPTIONS = {
    "a share above 1": WrongOption("bart", "mask_ratio", 2, "mask_ratio: must be"),
    "nan": WrongOption(
        "tokendrop", "tokendrop_temperature", float("nan"), "tokendrop_temperature: must be"
    ),
    "a mapping": WrongOption(
        "filtertoolong", "src_seq_length", {"a": 1}, "src_seq_length: must be"
    ),
    "below the range": WrongOption(
        "sentencepiece", "src_subword_nbest", -7, "src_subword_nbest: must be"
    ),
    "an endless file": WrongOption(
        "bpe",
        "src_subword_model",
        "/dev/zero",
        "src_subword_model: /dev/zero is a pipe or a device",
    ),
    "a null in a file name": WrongOption(
        "bpe", "src_subword_model", "a\0b", "src_subword_model: must be text"
    ),
    "an endless file among the arguments": WrongOption(
        "onmt_tokenize",
        "src_onmttok_kwargs",
        "{'bpe_model_path': '/dev/zero'}",
        "src_onmttok_kwargs: bpe_model_path: name it in",
    ),
    "code": WrongOption(
        "onmt_tokenize",
        "src_onmttok_kwargs",
        "__import__('os').system('ls')",
        "src_onmttok_kwargs: expected a mapping",
    ),
    "100,000 brackets": WrongOption(
        "onmt_tokenize", "src_onmttok_kwargs", "[" * 10**5, "src_onmttok_kwargs: expected a mapping"
    ),
}
each_wrong_option = pytest.mark.parametrize("wrong", WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)


def with_option(folder: Path, wrong: WrongOption) -> LoadedModel:
    """Load a model as if its folder recorded this option alone."""
    return dataclasses.replace(load(folder), options={wrong.name: wrong.value})


@each_wrong_option
def test_a_wrong_option_of_a_transform_is_refused(
    models: dict[Kind, Path], wrong: WrongOption
) -> None:
    """Decoding checks the options in a model folder as strictly as training checks YAML."""
    model = with_option(models["rnn"], wrong)
    with pytest.raises(UserError) as raised:
        Translator([model], SearchTask(), [wrong.transform])
    assert_short_line(raised.value, wrong.message)


@each_wrong_option
def test_a_wrong_option_that_no_transform_reads_does_no_harm(
    models: dict[Kind, Path], wrong: WrongOption
) -> None:
    Translator([with_option(models["rnn"], wrong)], SearchTask())
