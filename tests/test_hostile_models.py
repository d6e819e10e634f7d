"""Models of strangers: what is wrong in a configuration is one line, without a hang."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

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

HUGE = 10**400
RULES = {name: option.rule for name, option in declared(ModelConfig).items()}
"""What each field of a configuration may be."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Save a recurrent model and a Transformer."""
    folders = {}
    for kind, config in (("rnn", BRNN), ("transformer", TRANSFORMER)):
        folders[kind] = tmp_path_factory.mktemp("models") / kind
        save(folders[kind], build_model(config, VOCABULARIES), config, VOCABULARIES, {})
    return folders


# --- single values ---------------------------------------------------------------------------

ABSURD: list[Any] = [
    None, True, -1, 0, 0.5, HUGE, -HUGE, float("nan"), float("inf"), -float("inf"), "", "x" * 5000,
    [], [1], {}, {"a": 1},
]  # fmt: skip
MOST_THAT_FIT = 3  # in a number that may be negative: -1, 0 and 0.5


@pytest.mark.parametrize("field", dataclasses.fields(ModelConfig), ids=lambda field: field.name)
def test_absurd_values_break_the_rules(field: dataclasses.Field) -> None:
    rule = RULES[field.name]
    assert rule.fits(field.default)
    values = [value for value in ABSURD if not rule.fits(value)]
    fitting = len(ABSURD) - len(values)
    assert fitting <= MOST_THAT_FIT
    for value in values:
        with pytest.raises(UserError) as raised:
            ModelConfig(**{field.name: value})
        assert_short_line(raised.value, f"{field.name}: must be ")


# --- networks --------------------------------------------------------------------------------


MISFITS = {
    "one Transformer": (
        "rnn",
        {"encoder_type": "transformer"},
        "encoder_type: a Transformer needs",
    ),
    "two directions of 7": (
        "rnn",
        {"rnn_size": 7, "encoder_type": "brnn"},
        "rnn_size: must be even",
    ),
    "too few layers": ("rnn", {"enc_layers": 1}, "dec_layers: 2 of a recurrent decoder"),
    "a mean of other size": (
        "rnn",
        {"encoder_type": "mean"},
        "src_word_vec_size: must equal rnn_size",
    ),
    "positions of 5": (
        "rnn",
        {"position_encoding": True, "src_word_vec_size": 5},
        "position_encoding: needs",
    ),
    "shared words": ("rnn", {"share_embeddings": True}, "share_embeddings: needs one vocabulary"),
    "three heads of 8": ("transformer", {"heads": 3}, "heads: must divide rnn_size 8"),
    "other weights": ("transformer", {"enc_layers": 3}, "model.safetensors: "),
    "a long key": ("rnn", {"x" * 5000: 8}, "no such key"),
}


@pytest.mark.parametrize(("kind", "changes", "message"), MISFITS.values(), ids=MISFITS)
def test_a_network_that_does_not_fit_is_refused(
    models: dict[str, Path], tmp_path: Path, kind: str, changes: dict[str, object], message: str
) -> None:
    folder = Path(shutil.copytree(models[kind], tmp_path / "model"))
    content = yaml.safe_load((folder / "config.yaml").read_text())
    content["model"].update(changes)
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    write_list(folder)
    with pytest.raises(UserError) as raised:
        load(folder)
    assert_short_line(raised.value, str(folder), message)


# --- options of transforms -------------------------------------------------------------------


wrong_options = pytest.mark.parametrize(
    ("transform", "options"),
    [
        pytest.param("bart", {"mask_ratio": 2}, id="a share above 1"),
        pytest.param("tokendrop", {"tokendrop_temperature": float("nan")}, id="nan"),
        pytest.param("filtertoolong", {"src_seq_length": {"a": 1}}, id="a mapping"),
        pytest.param("sentencepiece", {"src_subword_nbest": -7}, id="below the range"),
        pytest.param("bpe", {"src_subword_model": "/dev/zero"}, id="an endless file"),
        pytest.param("bpe", {"src_subword_model": "a\0b"}, id="no file name"),
        pytest.param(
            "onmt_tokenize",
            {"src_onmttok_kwargs": "{'bpe_model_path': '/dev/zero'}"},
            id="an endless file among the arguments",
        ),
        pytest.param(
            "onmt_tokenize", {"src_onmttok_kwargs": "__import__('os').system('ls')"}, id="code"
        ),
        pytest.param("onmt_tokenize", {"src_onmttok_kwargs": "[" * 10**5}, id="100,000 brackets"),
    ],
)


def with_options(folder: Path, options: dict[str, Any]) -> LoadedModel:
    """Return a model whose folder records these options."""
    return dataclasses.replace(load(folder), options=options)


@wrong_options
def test_wrong_options_of_transforms_are_refused(
    models: dict[str, Path], transform: str, options: dict[str, Any]
) -> None:
    """Decoding reads them from the folder, as strictly as training does from YAML."""
    model = with_options(models["rnn"], options)
    (name,) = options
    with pytest.raises(UserError) as raised:
        Translator([model], SearchTask(), [transform])
    assert_short_line(raised.value, name)


@wrong_options
def test_wrong_options_that_no_transform_reads_do_no_harm(
    models: dict[str, Path], transform: str, options: dict[str, Any]
) -> None:
    Translator([with_options(models["rnn"], options)], SearchTask())
