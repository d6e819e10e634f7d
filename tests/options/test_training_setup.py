"""Options of `train`, in a file and in flags, become fields of the configurations of a training."""

from pathlib import Path

import pytest
import yaml

from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.task import INFLECTION
from tests.options.trainings import (
    ENTMAX_OUTPUT,
    LEARNED_ENCODER_ATTENTION,
    TRANSFORMER,
    Changes,
    toy_setup,
)
from tests.toy import write_corpus


def values_of(configuration: object, names: Changes) -> Changes:
    """Return the fields of a configuration that have these names."""
    return {name: getattr(configuration, name) for name in names}


# --- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "flags", "alphas"),
    [
        pytest.param(
            {"generator_function": "sparsemax"}, "", {"generator_alpha": 2}, id="sparsemax"
        ),
        pytest.param(
            {"generator_function": "entmax"}, "", {"generator_alpha": 1.5}, id="entmax alone"
        ),
        pytest.param(
            {"generator_function": "entmax", "generator_alpha": 1.3},
            "",
            {"generator_alpha": 1.3, "global_attention_alpha": 1.5},
            id="entmax and its alpha",
        ),
        pytest.param(
            ENTMAX_OUTPUT,
            "-generator_function softmax",
            {"generator_alpha": 1},
            id="softmax by a flag for entmax in the file",
        ),
        pytest.param(
            LEARNED_ENCODER_ATTENTION,
            "",
            {"encoder_attention_alpha": "learned", "decoder_attention_alpha": 1},
            id="learned in the encoder",
        ),
    ],
)
def test_the_function_of_a_mapping_becomes_its_alpha(
    tmp_path: Path, file: Changes, flags: str, alphas: Changes
) -> None:
    model = toy_setup(tmp_path, flags, **file).model
    assert values_of(model, alphas) == alphas


@pytest.mark.parametrize(
    ("file", "flags", "sizes"),
    [
        pytest.param(
            {"layers": 3, "enc_layers": 1},
            "",
            {"enc_layers": 3, "dec_layers": 3},
            id="both sides win over one side in the same file",
        ),
        pytest.param(
            TRANSFORMER | {"layers": 3},
            "-enc_layers 1",
            {"enc_layers": 1, "dec_layers": 3},
            id="a flag of one side wins over both sides in the file",
        ),
        pytest.param(
            {"layers": None, "enc_layers": 3},
            "-layers 2",
            {"enc_layers": 2, "dec_layers": 2},
            id="a flag of both sides wins over one side in the file",
        ),
        pytest.param(
            {"rnn_size": -1, "enc_rnn_size": 8, "dec_rnn_size": 8},
            "",
            {"rnn_size": 8},
            id="equal sizes of both sides are the size of the states",
        ),
    ],
)
def test_sizes_of_both_sides_become_those_of_each(
    tmp_path: Path, file: Changes, flags: str, sizes: Changes
) -> None:
    model = toy_setup(tmp_path, flags, **file).model
    assert values_of(model, sizes) == sizes


# --- batches and limits ----------------------------------------------------------------------


def test_batches_of_all_processes_are_accumulated(tmp_path: Path) -> None:
    training = toy_setup(tmp_path, world_size=4, accum_count=[2]).training
    assert training.accum_count == (8,)


@pytest.mark.parametrize(
    ("flags", "size"),
    [
        pytest.param("-batch_type tokens", 99, id="of the file"),
        pytest.param("-batch_type sents -batch_size 8", 8, id="of the flag"),
    ],
)
def test_a_batch_size_is_kept_or_replaced_by_a_flag(tmp_path: Path, flags: str, size: int) -> None:
    data = toy_setup(tmp_path, flags, batch_type="tokens", batch_size=99).data
    assert data.batch_size == size


EPOCHS = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}


@pytest.mark.parametrize(
    ("file", "flags", "limits"),
    [
        pytest.param(
            EPOCHS,
            "",
            {"train_steps": None, "train_epochs": 4, "valid_epochs": 2},
            id="epochs in the file",
        ),
        pytest.param(
            EPOCHS,
            "-train_steps 9 -valid_steps 3",
            {"train_steps": 9, "train_epochs": None, "valid_steps": 3, "valid_epochs": None},
            id="updates by flags for epochs in the file",
        ),
        pytest.param(
            {},  # the toy task's file limits updates
            "-train_epochs 4 -valid_epochs 2",
            {"train_steps": None, "train_epochs": 4, "valid_epochs": 2},
            id="epochs by flags for updates in the file",
        ),
    ],
)
def test_a_flag_of_epochs_or_updates_replaces_the_other_limit_of_the_file(
    tmp_path: Path, file: Changes, flags: str, limits: Changes
) -> None:
    training = toy_setup(tmp_path, flags, **file).training
    assert values_of(training, limits) == limits


@pytest.mark.parametrize("steps", [None, 500])
def test_a_limit_of_time_replaces_the_default_of_train_steps(
    tmp_path: Path, steps: int | None
) -> None:
    """A cosine decay ends at whichever of the two is set."""
    cosine = {"decay_method": "cosine", "warmup_steps": 2, "train_steps": steps}
    training = toy_setup(tmp_path, "-max_seconds 9", **cosine).training
    assert (training.max_seconds, training.train_steps) == (9, steps)


def test_dropout_may_change_during_training(tmp_path: Path) -> None:
    changing = {"dropout": [0.1, 0.2], "attention_dropout": [0, 0], "dropout_steps": [0, 9]}
    training = toy_setup(tmp_path, **changing).training
    assert (training.dropout, training.dropout_steps) == ((0.1, 0.2), (0, 9))


def test_checkpoints_are_selected_by_what_validation_measures(tmp_path: Path) -> None:
    setup = toy_setup(tmp_path, "-selection exact_match")
    assert setup.validation.selection == setup.training.selection == "exact_match"


def test_the_optimiser_has_the_size_of_the_network(tmp_path: Path) -> None:
    """Noam's decay depends on it."""
    setup = toy_setup(tmp_path, rnn_size=24)
    assert setup.training.optimizer.rnn_size == setup.model.rnn_size == 24


# --- the run and its data --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "world_size", "gpu"),
    [
        pytest.param([2], 1, 2, id="one GPU"),
        pytest.param([1, 0], 2, 1, id="all GPUs of one machine: the first that is listed"),
        pytest.param([2, 3], 4, 0, id="those of the second of two machines"),
    ],
)
def test_ranks_become_the_number_of_a_gpu(
    tmp_path: Path, ranks: list[int], world_size: int, gpu: int
) -> None:
    assert toy_setup(tmp_path, gpu_ranks=ranks, world_size=world_size).run.gpu == gpu


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param({"train_from": ""}, {"train_from": None}, id="no checkpoint to continue from"),
        pytest.param(
            {"reset_optim": "states", "warmup_steps": 0},
            {"reset_optim": "all"},
            id="a name of OpenNMT-py",
        ),
        pytest.param(
            {"tensorboard": True, "save_model": "x"},
            {"tensorboard": "x/tensorboard"},
            id="TensorBoard's files beside the checkpoints",
        ),
        pytest.param(
            {"both_embeddings": __file__, "embeddings_type": "GloVe"},
            {"src_embeddings": __file__, "tgt_embeddings": __file__},
            id="word vectors of both sides",
        ),
    ],
)
def test_options_of_a_run_become_its_start_and_its_files(
    tmp_path: Path, file: Changes, expected: Changes
) -> None:
    run = toy_setup(tmp_path, **file).run
    assert values_of(run, expected) == expected


def test_the_training_data_decides_whether_words_are_inflected(tmp_path: Path) -> None:
    """The development set, which the file names first, has no languages."""
    data = {name: write_corpus(tmp_path, name, 2, seed=1) for name in ("valid", "words")}
    Path(data["words"]["path_src"]).write_text("lang=german +V a b\n" * 2)
    assert toy_setup(tmp_path, data=data).data.task == INFLECTION


# --- the record ------------------------------------------------------------------------------


def test_the_record_of_a_training_can_be_read_as_its_file(tmp_path: Path) -> None:
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
