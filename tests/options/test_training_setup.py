"""Options of `train` become fields of the configurations of modules."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.options.precedence import earlier_in_force
from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.task import INFLECTION
from tests.options.setups import ENTMAX, LEARNED, TRANSFORMER, Changes, id_of, toy_setup
from tests.toy import write_corpus

EPOCHS = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}


def case(name: str, expected: dict[str, object], *, flags: str = "", **file: object) -> Any:
    """Return a case: fields of the configurations, by options in a file and by flags."""
    return pytest.param(file, flags, expected, id=name)


ALPHAS_OF_MAPPINGS = [
    case("sparsemax", {"generator_alpha": 2}, generator_function="sparsemax"),
    case("entmax without an alpha", {"generator_alpha": 1.5}, generator_function="entmax"),
    case("entmax", {"generator_alpha": 1.3, "global_attention_alpha": 1.5}, **ENTMAX),
    case(
        "a flag of softmax for a file of entmax",
        {"generator_alpha": 1},
        flags="-generator_function softmax",
        **ENTMAX,
    ),
    case(
        "learned alphas of the encoder",
        {"encoder_attention_alpha": "learned", "decoder_attention_alpha": 1},
        **LEARNED,
    ),
]
SIZES = [
    case("layers of both", {"enc_layers": 3, "dec_layers": 3}, layers=3, enc_layers=1),
    case(
        "layers of the encoder by a flag",
        {"enc_layers": 1, "dec_layers": 3},
        flags="-enc_layers 1",
        **TRANSFORMER,
        layers=3,
    ),
    case(
        "layers of both by a flag",
        {"enc_layers": 2, "dec_layers": 2},
        flags="-layers 2",
        layers=None,
        enc_layers=3,
    ),
    case(
        "equal sizes of both",
        {"rnn_size": 8},
        rnn_size=-1,
        enc_rnn_size=8,
        dec_rnn_size=8,
    ),
]
BATCHES = [
    case(
        "batches of four processes",
        {"accum_count": (8,), "world_size": 4},
        world_size=4,
        accum_count=[2],
    ),
    case(
        "tokens by a file and a flag",
        {"batch_size": 99},
        flags="-batch_type tokens",
        batch_type="tokens",
        batch_size=99,
    ),
    case(
        "sentences by flags",
        {"batch_size": 8},
        flags="-batch_type sents -batch_size 8",
        batch_type="tokens",
    ),
]
LENGTH_OF_TRAINING = [
    case("epochs", {"train_steps": None, "train_epochs": 4, "valid_epochs": 2}, **EPOCHS),
    case(
        "flags of steps for a file of epochs",
        {"train_steps": 9, "train_epochs": None, "valid_steps": 3, "valid_epochs": None},
        flags="-train_steps 9 -valid_steps 3",
        **EPOCHS,
    ),
    case(
        "flags of epochs for a file of steps",
        {"train_steps": None, "valid_epochs": 2},
        flags="-train_epochs 4 -valid_epochs 2",
    ),
]
GPUS = [
    case(
        "an empty train_from, and a GPU",
        {"train_from": None, "gpu": 2},
        train_from="",
        gpu_ranks=[2],
    ),
    case("ranks of the second machine", {"gpu": 0}, gpu_ranks=[2, 3], world_size=4),
    case("ranks in another order", {"gpu": 1}, gpu_ranks=[1, 0], world_size=2),
]
OTHERS = [
    case(
        "dropout that changes",
        {"dropout": (0.1, 0.2), "dropout_steps": (0, 9)},
        dropout=[0.1, 0.2],
        dropout_steps=[0, 9],
        attention_dropout=[0, 0],
    ),
    case("reset_optim", {"reset_optim": "all"}, reset_optim="states", warmup_steps=0),
    case("tensorboard", {"tensorboard": "x/tensorboard"}, tensorboard=True, save_model="x"),
    case(
        "embeddings of both",
        {"src_embeddings": __file__, "tgt_embeddings": __file__},
        both_embeddings=__file__,
        embeddings_type="GloVe",
    ),
]


@pytest.mark.parametrize(
    ("file", "flags", "expected"),
    [*ALPHAS_OF_MAPPINGS, *SIZES, *BATCHES, *LENGTH_OF_TRAINING, *GPUS, *OTHERS],
)
def test_options_become_fields_of_the_configurations(
    tmp_path: Path, file: Changes, flags: str, expected: dict[str, object]
) -> None:
    setup = toy_setup(tmp_path, flags, **file)
    # A name that several parts have stands for the field of the last one.
    parts = (setup.validation, setup.vocabulary, setup.data, setup.model, setup.run, setup.training)
    fields = {name: value for part in parts for name, value in vars(part).items()}
    assert {name: fields[name] for name in expected} == expected


def test_training_selects_checkpoints_as_validation_measures(tmp_path: Path) -> None:
    setup = toy_setup(tmp_path, "-selection exact_match")
    assert setup.validation.selection == setup.training.selection == "exact_match"


def test_the_optimiser_has_the_size_of_the_network(tmp_path: Path) -> None:
    """Noam's decay depends on it."""
    setup = toy_setup(tmp_path, rnn_size=24)
    assert setup.training.optimizer.rnn_size == setup.model.rnn_size == 24


def test_the_training_data_decides_whether_words_are_inflected(tmp_path: Path) -> None:
    """The development set, which the file names first, has no languages."""
    data = {name: write_corpus(tmp_path, name, 2, seed=1) for name in ("valid", "words")}
    Path(data["words"]["path_src"]).write_text("lang=german +V a b\n" * 2)
    assert toy_setup(tmp_path, data=data).data.task == INFLECTION


@pytest.mark.parametrize("steps", [None, 500])
def test_a_limit_of_time_replaces_the_default_of_train_steps(
    tmp_path: Path, steps: int | None
) -> None:
    """A cosine decay ends at one of them."""
    cosine = {"decay_method": "cosine", "warmup_steps": 2, "train_steps": steps}
    training = toy_setup(tmp_path, "-max_seconds 9", **cosine).training
    assert (training.max_seconds, training.train_steps) == (9, steps)


def test_the_record_reads_back_to_the_same_toy_setup(tmp_path: Path) -> None:
    first = toy_setup(tmp_path, "-world_size 2 -train_epochs 3 -enc_layers 1")
    path = tmp_path / "again.yaml"
    record = {
        name: value
        for name, value in first.record.items()
        if value is not None and name != "valid_steps"  # a flag has it
    }
    path.write_text(yaml.safe_dump(record))
    again = training_setup(["-config", str(path), "-valid_steps", "10", "-train_epochs", "3"])
    assert again.record == first.record
    assert (again.model, again.training, again.data) == (first.model, first.training, first.data)


@pytest.mark.parametrize(
    ("earlier", "later", "left"),
    [
        ({"both_embeddings": "a"}, {"src_embeddings": "b"}, {}),
        ({"src_embeddings": "a", "seed": 1}, {"both_embeddings": "b"}, {"seed": 1}),
        ({"layers": -1, "dec_layers": 2}, {"enc_layers": 1}, {"dec_layers": 2}),
        ({"encoder_attention_alpha": 1.3}, {"encoder_attention_function": "sparsemax"}, {}),
    ],
    ids=id_of,
)
def test_a_later_place_replaces_exclusive_options_of_an_earlier_one(
    earlier: Changes, later: Changes, left: Changes
) -> None:
    assert earlier_in_force(earlier, later) == left
