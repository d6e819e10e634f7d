"""From options of `train` to the configuration of each module, and what excludes each other."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.options.rivals import without_rivals
from onmt_entmax.options.train import TrainingSetup, training_setup
from tests.toy import write_config, write_corpus

TRANSFORMER = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "word_vec_size": 32,
    "heads": 4,
    "global_attention_function": None,
}
LEARNED = TRANSFORMER | {"encoder_attention_function": "learned"}
AVERAGE = TRANSFORMER | {"self_attn_type": "average"}
ENTMAX = {"generator_function": "entmax", "generator_alpha": 1.3}
EPOCHS = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}


def setup(folder: Path, flags: str = "", **file: object) -> TrainingSetup:
    """Return the setup of the toy task with changes in its file, and of flags."""
    return training_setup(["-config", str(write_config(folder, **file)), *flags.split()])


Changes = dict[str, Any]
"""Options of the toy task's file; None leaves one out."""

ALPHAS_OF_MAPPINGS = [
    ({"generator_function": "sparsemax"}, "", {"generator_alpha": 2}),
    ({"generator_function": "entmax"}, "", {"generator_alpha": 1.5}),
    (ENTMAX, "", {"generator_alpha": 1.3, "global_attention_alpha": 1.5}),
    (ENTMAX, "-generator_function softmax", {"generator_alpha": 1}),
    (LEARNED, "", {"encoder_attention_alpha": "learned", "decoder_attention_alpha": 1}),
]
SIZES = [
    ({"layers": 3, "enc_layers": 1}, "", {"enc_layers": 3, "dec_layers": 3}),
    (TRANSFORMER | {"layers": 3}, "-enc_layers 1", {"enc_layers": 1, "dec_layers": 3}),
    ({"layers": None, "enc_layers": 3}, "-layers 2", {"enc_layers": 2, "dec_layers": 2}),
    ({"rnn_size": -1, "enc_rnn_size": 8, "dec_rnn_size": 8}, "", {"rnn_size": 8}),
]
BATCHES = [
    ({"world_size": 4, "accum_count": [2]}, "", {"accum_count": (8,), "world_size": 4}),
    ({"batch_type": "tokens", "batch_size": 99}, "-batch_type tokens", {"batch_size": 99}),
    ({"batch_type": "tokens"}, "-batch_type sents -batch_size 8", {"batch_size": 8}),
]
LENGTH_OF_TRAINING = [
    (EPOCHS, "", {"train_steps": None, "train_epochs": 4, "valid_epochs": 2}),
    (EPOCHS, "-train_steps 9 -valid_steps 3",
     {"train_steps": 9, "train_epochs": None, "valid_steps": 3, "valid_epochs": None}),
    ({}, "-train_epochs 4 -valid_epochs 2", {"train_steps": None, "valid_epochs": 2}),
]  # fmt: skip
GPUS = [
    ({"train_from": "", "gpu_ranks": [2]}, "", {"train_from": None, "gpu": 2}),
    ({"gpu_ranks": [2, 3], "world_size": 4}, "", {"gpu": 0}),
    ({"gpu_ranks": [1, 0], "world_size": 2}, "", {"gpu": 1}),
]
OTHERS = [
    ({"dropout": [0.1, 0.2], "dropout_steps": [0, 9], "attention_dropout": [0, 0]}, "",
     {"dropout": (0.1, 0.2), "dropout_steps": (0, 9)}),
    ({"reset_optim": "states", "warmup_steps": 0}, "", {"reset_optim": "all"}),
    ({"tensorboard": True, "save_model": "x"}, "", {"tensorboard": "x/tensorboard"}),
    ({"both_embeddings": __file__, "embeddings_type": "GloVe"}, "",
     {"src_embeddings": __file__, "tgt_embeddings": __file__}),
]  # fmt: skip


def id_of(value: Changes | str) -> str:
    """Name a case by its options."""
    return value if isinstance(value, str) else ", ".join(value)


@pytest.mark.parametrize(
    ("file", "flags", "expected"),
    [*ALPHAS_OF_MAPPINGS, *SIZES, *BATCHES, *LENGTH_OF_TRAINING, *GPUS, *OTHERS],
    ids=id_of,
)
def test_options_become_fields(
    tmp_path: Path, file: Changes, flags: str, expected: dict[str, object]
) -> None:
    read = setup(tmp_path, flags, **file)
    # A field that several configurations have is that of the first, here and in training.
    parts = (read.training, read.run, read.model, read.data, read.vocabulary, read.validation)
    for name, value in expected.items():
        first, *_ = [getattr(part, name) for part in parts if hasattr(part, name)]
        assert first == value, name
    assert read.validation.selection == read.training.selection
    assert read.training.optimizer.rnn_size == read.model.rnn_size


MAPPINGS_REFUSED = [
    (
        {"generator_function": "entmax", "generator_alpha": 0.5},
        "generator_alpha: must be a number from 1",
    ),
    (
        {"global_attention_alpha": 1.2},
        "global_attention_alpha: is only read with global_attention_function: entmax",
    ),
    (
        ENTMAX | {"generator_function": "softmax"},
        "generator_alpha: is only read with generator_function: entmax",
    ),
    (
        {"attention_warmup_steps": 9, "global_attention_function": "softmax"},
        "attention_warmup_steps: is only read with global_attention_function or",
    ),
    (
        {"encoder_attention_function": "learned"},
        "encoder_attention_function: is only read with decoder_type: transformer",
    ),
    (
        TRANSFORMER | {"global_attention_function": "entmax15"},
        "global_attention_function: is only read with decoder_type: rnn",
    ),
    (
        TRANSFORMER | {"alpha_init_std": 2},
        "alpha_init_std: is only read with encoder_attention_function: learned or",
    ),
    (
        LEARNED | {"encoder_attention_alpha": 2},
        "encoder_attention_alpha: is only read with encoder_attention_function: entmax",
    ),
    (
        AVERAGE | {"decoder_attention_function": "learned"},
        "decoder_attention_alpha: needs self_attn_type: scaled-dot",
    ),
]
NETWORKS_REFUSED = [
    ({"rnn_size": 33}, "rnn_size: must be even"),
    ({"encoder_type": "transformer"}, "encoder_type: a Transformer needs it on both sides"),
    ({"dropout": [0.1, 0.2]}, "dropout: needs as many values as dropout_steps"),
    ({"dropout": [0.1, 0.2], "dropout_steps": [9, 0]}, "dropout_steps: must rise"),
]
VOCABULARIES_REFUSED = [
    ({"label_smoothing_prior": "unigram"}, "_prior: is only read with label_smoothing"),
    ({"share_embeddings": True}, "share_embeddings: is only read with share_vocab"),
    ({"copy_frequency": 2, "share_vocab": True}, "copy_frequency: needs vocabularies"),
    ({"copy_frequency": 2, "src_words_min_frequency": 3}, "copy_frequency: decides which symbols"),
    ({"src_vocab": "v", "tgt_vocab": "./v"}, "tgt_vocab: is src_vocab, and not there yet"),
    ({"both_embeddings": "no", "embeddings_type": "GloVe"}, "both_embeddings: no such file: no"),
]
SCHEDULES_REFUSED = [
    ({"valid_epochs": 1}, "toy.yaml: valid_epochs: give valid_steps or valid_epochs, not both"),
    (
        {"decay_method": "cosine", "train_steps": None, "train_epochs": 2},
        "decay_method: cosine ends at train_steps",
    ),
    ({"decay_method": "noam", "warmup_steps": 0}, "warmup_steps: must be at least 1 with decay"),
]
MACHINES_REFUSED = [
    ({"gpu_ranks": [0, 1]}, "names 2 GPUs: start as many processes with torchrun"),
    ({"matmul_dtype": "tf32"}, "matmul_dtype: tf32 needs a GPU: give gpu_ranks"),
    ({"matmul_dtype": "bfloat16", "rnn_type": "GRU"}, "matmul_dtype: bfloat16 is of LSTM"),
    ({"save_model": __file__}, "save_model: is a file; name a folder"),
]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        *MAPPINGS_REFUSED,
        *NETWORKS_REFUSED,
        *VOCABULARIES_REFUSED,
        *SCHEDULES_REFUSED,
        *MACHINES_REFUSED,
    ],
    ids=id_of,
)
def test_what_cannot_be_trained_is_one_line(tmp_path: Path, file: Changes, message: str) -> None:
    with pytest.raises(UserError) as caught:
        setup(tmp_path, **file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def refusal_of_corpus(folder: Path, **entry: object) -> str:
    """Return the message that refuses an entry under `data`, of the name `c`."""
    with pytest.raises(UserError) as caught:
        setup(folder, data={"c": entry})
    return str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path_src": None}, "toy.yaml: data: corpus 'c': path_src: is required"),
        ({"path_tgt": "a"}, "corpus 'c': path_src: is required"),
        ({"path_src": False}, "corpus 'c': path_src: must be text, not False; put it between"),
        ({"path_src": "nowhere"}, "corpus 'c': path_src: no such file: nowhere (searched in "),
    ],
    ids=["no value", "no source", "no text", "no file"],
)
def test_paths_of_a_corpus_are_checked(tmp_path: Path, entry: Changes, message: str) -> None:
    assert message in refusal_of_corpus(tmp_path, **entry)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"path_scr": "a"}, "corpus 'c': path_scr: no such key; did you mean 'path_src'?"),
        ({"src_feats": {}}, "corpus 'c': src_feats: source features are not supported; write"),
        ({"save_model": "a"}, "save_model: is an option of the whole file; write it at the start"),
        ({"weight": 0}, "corpus 'c': weight: must be a whole number from 1"),
        ({"transforms": ["bpee"]}, "corpus 'c': transforms: must be one of switchout,"),
        ({"transforms": ["bpee"]}, "not 'bpee'; did you mean 'bpe'?"),
        ({"transforms": ["prefix"]}, "corpus 'c': the transform prefix needs src_prefix"),
        ({"src_prefix": "a"}, "src_prefix: is only read with the transform prefix"),
    ],
    ids=id_of,
)
def test_other_keys_of_a_corpus_are_checked(tmp_path: Path, more: Changes, message: str) -> None:
    paths = write_corpus(tmp_path, "corpus", size=3, seed=1)
    assert message in refusal_of_corpus(tmp_path, **paths, **more)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({False: {}}, "toy.yaml: data: False: must be text; put it between quotes"),
        ({"valid": {}}, "data: needs a corpus besides valid"),
        ({}, "data: this option is required"),
        ("files", "data: must be a mapping, not 'files'; name corpora under data"),
        ({"c": []}, "data: corpus 'c': must be a mapping with path_src and path_tgt"),
    ],
    ids=["name 'no' without quotes", "validation alone", "nothing", "text", "list"],
)
def test_data_without_corpora_is_refused(tmp_path: Path, data: object, message: str) -> None:
    with pytest.raises(UserError) as caught:
        setup(tmp_path, data=data)
    assert message in str(caught.value)


def test_transforms_of_a_corpus_win_over_those_of_all(tmp_path: Path) -> None:
    data = yaml.safe_load(write_config(tmp_path).read_text())["data"]
    data["own"] = data["corpus_1"] | {"transforms": []}
    data["other"] = data["corpus_1"] | {"transforms": "bart"}
    corpora = setup(tmp_path, data=data, transforms=["filtertoolong"]).data.corpora
    expected = {"corpus_1": ("filtertoolong",), "own": (), "other": ("bart",)}
    assert {corpus.name: corpus.transforms for corpus in corpora} == expected


def test_options_of_a_transformer_are_without_effect_in_a_recurrent_network(tmp_path: Path) -> None:
    (note,) = setup(tmp_path, heads=4, pos_ffn_activation_fn="gelu").notes
    assert note.endswith(": heads (of a Transformer), pos_ffn_activation_fn (of a Transformer)")


def test_options_of_a_recurrent_network_are_without_effect_in_a_transformer(tmp_path: Path) -> None:
    (note,) = setup(tmp_path, rnn_type="GRU", **TRANSFORMER).notes
    assert note == "without effect here: rnn_type (of a recurrent decoder)"


@pytest.mark.parametrize("steps", [None, 500])
def test_a_limit_of_time_replaces_the_default_of_train_steps(
    tmp_path: Path, steps: int | None
) -> None:
    """A cosine decay ends at one of them."""
    cosine = {"decay_method": "cosine", "warmup_steps": 2, "train_steps": steps}
    training = setup(tmp_path, "-max_seconds 9", **cosine).training
    assert (training.max_seconds, training.train_steps) == (9, steps)


def test_the_record_reads_back_to_the_same_setup(tmp_path: Path) -> None:
    first = setup(tmp_path, "-world_size 2 -train_epochs 3 -enc_layers 1")
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
)
def test_a_later_place_replaces_the_rivals_of_an_earlier_one(
    earlier: dict[str, object], later: dict[str, object], left: dict[str, object]
) -> None:
    assert without_rivals(earlier, later) == left


def test_a_batch_size_that_changes_its_meaning_is_warned_of(tmp_path: Path) -> None:
    read = setup(tmp_path, "-batch_type sents", batch_type="tokens")
    assert read.warnings == (
        "command line: batch_type: sents: batch_size 16 counted tokens; give batch_size too",
    )
    assert (read.data.batch_type, read.data.batch_size) == ("sents", 16)


@pytest.mark.parametrize("flags", ["-batch_type sents -batch_size 8", "-batch_type tokens"])
def test_a_batch_size_that_keeps_its_meaning_is_not_warned_of(tmp_path: Path, flags: str) -> None:
    assert not setup(tmp_path, flags, batch_type="tokens").warnings


@pytest.mark.parametrize(
    ("changes", "dtype"),
    [
        ({}, "float32"),
        ({"gpu_ranks": [0]}, "tf32"),
        ({"gpu_ranks": [0], "matmul_dtype": "float32"}, "float32"),
    ],
)
def test_half_precision_is_32_bits_and_on_a_gpu_tf32(
    tmp_path: Path, changes: dict[str, object], dtype: str
) -> None:
    read = setup(tmp_path, model_dtype="fp16", **changes)
    assert read.training.matmul_dtype == read.record["matmul_dtype"] == dtype
    assert "model_dtype fp16 as 32-bit floats" in read.notes[0]


@pytest.mark.parametrize(
    ("criteria", "selection", "notes"),
    [("accuracy", "token_accuracy", 1), ("ppl", "loss", 1), (None, "loss", 0)],
)
def test_criteria_of_early_stopping_are_the_selection(
    tmp_path: Path, criteria: str | None, selection: str, notes: int
) -> None:
    read = setup(tmp_path, early_stopping=3, early_stopping_criteria=criteria)
    assert read.training.selection == read.record["selection"] == selection
    assert len(read.notes) == notes


@pytest.mark.parametrize("criteria", ["accuracy", "ppl", None])
def test_a_selection_wins_over_criteria_of_early_stopping(
    tmp_path: Path, criteria: str | None
) -> None:
    changes = {"early_stopping": 3, "early_stopping_criteria": criteria}
    read = setup(tmp_path, "-selection exact_match", **changes)
    assert read.training.selection == "exact_match"


def test_options_that_no_transform_reads_are_listed(tmp_path: Path) -> None:
    read = setup(tmp_path, src_subword_model="nowhere.model", src_seq_length=9)
    assert read.notes == (
        "without effect here: src_subword_model (no transform reads it), "
        "src_seq_length (no transform reads it)",
    )
    assert (read.record["src_subword_model"], read.record["src_seq_length"]) == (None, 200)


def test_options_that_a_transform_reads_are_kept(tmp_path: Path) -> None:
    read = setup(tmp_path, transforms=["filtertoolong"], src_seq_length=9)
    assert not read.notes
    assert read.data.transform_options["src_seq_length"] == 9
