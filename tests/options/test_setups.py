"""From options to the configuration of each module: conversions, and what excludes each other."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.options.rivals import without_rivals
from onmt_entmax.options.train import TrainingSetup, training_setup
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


@pytest.mark.parametrize(
    ("file", "flags", "expected"),
    [
        ({"generator_function": "sparsemax"}, "", {"generator_alpha": 2}),
        ({"generator_function": "entmax"}, "", {"generator_alpha": 1.5}),
        (ENTMAX, "", {"generator_alpha": 1.3, "global_attention_alpha": 1.5}),
        (ENTMAX, "-generator_function softmax", {"generator_alpha": 1}),
        (LEARNED, "", {"encoder_attention_alpha": "learned", "decoder_attention_alpha": 1}),
        ({"layers": 3, "enc_layers": 1}, "", {"enc_layers": 3, "dec_layers": 3}),
        (TRANSFORMER | {"layers": 3}, "-enc_layers 1", {"enc_layers": 1, "dec_layers": 3}),
        ({"layers": None, "enc_layers": 3}, "-layers 2", {"enc_layers": 2, "dec_layers": 2}),
        ({"rnn_size": -1, "enc_rnn_size": 8, "dec_rnn_size": 8}, "", {"rnn_size": 8}),
        ({"world_size": 4, "accum_count": [2]}, "", {"accum_count": (8,), "world_size": 4}),
        ({"dropout": [0.1, 0.2], "dropout_steps": [0, 9], "attention_dropout": [0, 0]}, "",
         {"dropout": (0.1, 0.2), "dropout_steps": (0, 9)}),
        (EPOCHS, "", {"train_steps": None, "train_epochs": 4, "valid_epochs": 2}),
        (EPOCHS, "-train_steps 9 -valid_steps 3",
         {"train_steps": 9, "train_epochs": None, "valid_steps": 3, "valid_epochs": None}),
        ({}, "-train_epochs 4 -valid_epochs 2", {"train_steps": None, "valid_epochs": 2}),
        ({"train_from": "", "gpu_ranks": [2]}, "", {"train_from": None, "gpu": 2}),
        ({"gpu_ranks": [2, 3], "world_size": 4}, "", {"gpu": 0}),
        ({"gpu_ranks": [1, 0], "world_size": 2}, "", {"gpu": 1}),
        ({"reset_optim": "states", "warmup_steps": 0}, "", {"reset_optim": "all"}),
        ({"batch_type": "tokens", "batch_size": 99}, "-batch_type tokens", {"batch_size": 99}),
        ({"batch_type": "tokens"}, "-batch_type sents -batch_size 8", {"batch_size": 8}),
        ({"tensorboard": True, "save_model": "x"}, "", {"tensorboard": "x/tensorboard"}),
        ({"both_embeddings": __file__, "embeddings_type": "GloVe"}, "",
         {"src_embeddings": __file__, "tgt_embeddings": __file__}),
    ],
)  # fmt: skip
def test_options_become_fields(
    tmp_path: Path, file, flags: str, expected: dict[str, object]
) -> None:
    read = setup(tmp_path, flags, **file)
    # A field that several configurations have is that of the first, here and in training.
    parts = (read.training, read.run, read.model, read.data, read.vocabulary, read.validation)
    for name, value in expected.items():
        first, *_ = [getattr(part, name) for part in parts if hasattr(part, name)]
        assert first == value, name
    assert read.validation.selection == read.training.selection
    assert read.training.optimizer.rnn_size == read.model.rnn_size


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"generator_function": "entmax", "generator_alpha": 0.5}, "generator_alpha: must be a nu"),
        ({"global_attention_alpha": 1.2}, "only read with global_attention_function: entmax"),
        (ENTMAX | {"generator_function": "softmax"}, "only read with generator_function: entmax"),
        ({"rnn_size": 33}, "rnn_size: must be even"),
        ({"label_smoothing_prior": "unigram"}, "only read with label_smoothing"),
        ({"attention_warmup_steps": 9, "global_attention_function": "softmax"}, "is only read wit"),
        ({"share_embeddings": True}, "share_embeddings: is only read with share_vocab"),
        ({"copy_frequency": 2, "share_vocab": True}, "copy_frequency: needs vocabularies"),
        ({"copy_frequency": 2, "src_words_min_frequency": 3}, "copy_frequency: decides which"),
        ({"encoder_type": "transformer"}, "a Transformer needs it on both sides"),
        ({"encoder_attention_function": "learned"}, "is only read with decoder_type: transformer"),
        (TRANSFORMER | {"global_attention_function": "entmax15"}, "only read with decoder_type: r"),
        (TRANSFORMER | {"alpha_init_std": 2}, "alpha_init_std: is only read with encoder_"),
        (LEARNED | {"encoder_attention_alpha": 2}, "only read with encoder_attention_function: en"),
        (AVERAGE | {"decoder_attention_function": "learned"}, "needs self_attn_type: scaled-dot"),
        ({"valid_epochs": 1}, "toy.yaml: valid_epochs: give valid_steps or valid_epochs, not both"),
        ({"decay_method": "cosine", "train_steps": None, "train_epochs": 2}, "cosine ends at "),
        ({"decay_method": "noam", "warmup_steps": 0}, "warmup_steps: must be at least 1 with"),
        ({"dropout": [0.1, 0.2]}, "dropout: needs as many values as dropout_steps"),
        ({"dropout": [0.1, 0.2], "dropout_steps": [9, 0]}, "dropout_steps: must rise"),
        ({"gpu_ranks": [0, 1]}, "names 2 GPUs: start as many processes with torchrun"),
        ({"matmul_dtype": "tf32"}, "tf32 needs a GPU: give gpu_ranks"),
        ({"matmul_dtype": "bfloat16", "rnn_type": "GRU"}, "bfloat16 is of LSTM"),
        ({"save_model": __file__}, "is a file; name a folder"),
        ({"src_vocab": "v", "tgt_vocab": "./v"}, "not there yet: name two files"),
        ({"both_embeddings": "no", "embeddings_type": "GloVe"}, "no such file: no"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_line(tmp_path: Path, file, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        setup(tmp_path, **file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{path_src: }", "toy.yaml: data: corpus 'c': path_src: is required"),
        ("{path_tgt: a}", "corpus 'c': path_src: is required"),
        ("{path_src: no}", "corpus 'c': path_src: must be text, not False; put it between quotes"),
        ("{path_src: nowhere}", r"corpus 'c': path_src: no such file: nowhere \(searched in "),
        ("{path_scr: a}", "corpus 'c': path_scr: no such key; did you mean 'path_src'"),
        ("{src_feats: {}}", "corpus 'c': src_feats: source features are not supported; write"),
        ("{save_model: a}", "save_model: is an option of the whole file; write it at the start"),
        ("{weight: 0}", "corpus 'c': weight: must be a whole number from 1"),
        ("{transforms: [bpee]}", "corpus 'c': transforms: must be one of .*; did you mean 'bpe'"),
        ("{transforms: [prefix]}", "corpus 'c': the transform prefix needs src_prefix"),
        ("{src_prefix: a}", "src_prefix: is only read with the transform prefix"),
        ("[]", "corpus 'c': must be a mapping with path_src and path_tgt"),
    ],
)
def test_corpora_are_checked(tmp_path: Path, entry: str, message: str) -> None:
    path = write_config(tmp_path)
    content = yaml.safe_load(path.read_text())
    entry = yaml.safe_load(entry)
    if isinstance(entry, dict) and not {"path_src", "path_tgt"} & entry.keys():
        entry = content["data"]["valid"] | entry
    path.write_text(yaml.safe_dump(content | {"data": {"c": entry}}))
    with pytest.raises(UserError, match=message):
        training_setup(["-config", str(path)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{no: {}}", "toy.yaml: data: False: must be text; put it between quotes"),
        ("{valid: {}}", "data: needs a corpus besides valid"),
        ("{}", "data: this option is required"),
        ("files", "data: must be a mapping, not 'files'; name corpora under data"),
    ],
)
def test_data_without_corpora_is_one_line(tmp_path: Path, data: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        setup(tmp_path, data=yaml.safe_load(data))


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
    """A cosine needs one of them."""
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


# --- translate ---------------------------------------------------------------------------------


Translate = Callable[[str], TranslationSetup]


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    """Return the setup of a translation by two models, of further flags."""
    (tmp_path / "s").write_text("a\n")
    arguments = ["-model", "m", "n", "-src", str(tmp_path / "s"), "-output", str(tmp_path / "o")]
    return lambda flags: translation_setup([*arguments, *flags.split()])


def test_the_defaults_of_a_translation(translate: Translate) -> None:
    read = translate("")
    assert read.task == SearchTask()
    assert [str(model) for model in read.models] == ["m", "n"]
    assert (read.batch_size, read.gpu, read.transforms, read.n_best) == (64, None, None, 1)


def test_a_gpu_and_no_transforms(translate: Translate) -> None:
    read = translate("-gpu 0 -transforms")
    assert (read.gpu, read.transforms) == (0, ())


def test_n_best_is_searched_for_and_written(translate: Translate) -> None:
    read = translate("-n_best 3")
    assert (read.task.config.n_best, read.n_best) == (3, 3)


@pytest.mark.parametrize(
    ("flags", "task"),
    [
        (
            "-length_penalty wu -alpha 0.6 -coverage_penalty summary -beta 0.2",
            SearchTask(SearchConfig(penalties=Penalties("wu", 0.6, "summary", 0.2))),
        ),
        (
            "-length_reward 0.5 -length_ratio 1.5 -coverage_penalty summary -beta 0.2",
            SearchTask(SearchConfig(penalties=Penalties("none", 0.0, "summary", 0.2, 0.5, 1.5))),
        ),
        (
            "-beam_size 7 -stop optimal -ban_unk_token -max_length 9 -min_length 2",
            SearchTask(
                SearchConfig(
                    7, max_length=9, stop="optimal", constraints=Constraints(min_length=2)
                ),
                ban_unknown=True,
            ),
        ),
        (
            "-search enumerate -mass 0.9",
            SearchTask(SearchConfig(n_best=0), method="enumerate", mass=0.9),
        ),
        ("-search exact -budget 77", SearchTask(method="exact", budget=Budget(expansions=77))),
    ],
)
def test_the_search_of_a_translation(translate: Translate, flags: str, task: SearchTask) -> None:
    assert translate(flags).task == task


@pytest.mark.parametrize(
    ("flags", "sampling"),
    [
        (
            "-random_sampling_topk 3 -n_best 2 -beam_size 1 -length_penalty none",
            Sampling(topk=3),
        ),
        ("-random_sampling_topp 0.5 -seed 4", Sampling(topp=0.5, seed=4)),
    ],
)
def test_the_sampling_of_a_translation(
    translate: Translate, flags: str, sampling: Sampling
) -> None:
    assert translate(flags).task.sampling == sampling


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("-search enumerate -beam_size 7", "beam_size: is only read with search: beam or "),
        ("-search exact -stop first", "stop: first goes with search: beam"),
        ("-budget 5", "budget: is only read with search: exact or search: enumerate or verify"),
        ("-mass 0.5", "mass: is only read with search: enumerate"),
        ("-search enumerate -length_penalty avg", "search: enumerate lists by probability"),
        ("-mbr chrf -search exact", "mbr: goes with search: beam or enumerate"),
        ("-mbr chrf -length_penalty avg", "mbr: is by probability"),
        ("-abstain 1.5", "abstain: must be a number from 0 to 1"),
        ("-abstain 0.5 -random_sampling_topk -1", "abstain: goes with a search"),
        ("-length_reward 1 -length_penalty avg", "length_reward: does not go with length_penalty"),
        ("-length_reward -1", "length_reward: must be a number from 0 to 1,000"),
        ("-length_reward 1 -length_ratio 0", "length_ratio: must be above 0 and at most 1,000"),
        ("-length_ratio 2", "length_ratio: is only read with length_reward"),
        ("-length_reward 1 -mbr chrf", "mbr: is by probability"),
        ("-length_penalty wu -alpha 900 -max_length 100000", "alpha: too large"),
        ("-min_length 101", "min_length: is above max_length, 100"),
        ("-random_sampling_topk 3 -min_length 2", "topk: .* takes n_best and max_length"),
        ("-random_sampling_topk 3 -replace_unk", "replace_unk: goes with a search"),
        ("-constraint_regex (", "constraint_regex: "),
        ("-constraints none", "constraints: no such file: none"),
        ("-tgt_prefix", "tgt_prefix: is only read with tgt"),
        ("-transforms bpee", "transforms: must be one of .* did you mean 'bpe'"),
        ("-output /dev/stdout -report_align", "report_align: needs an output file"),
        ("-train_steps 5", "-train_steps: no such option; onmt-entmax train has it"),
    ],
)  # fmt: skip
def test_what_cannot_be_translated_is_one_line(
    translate: Translate, flags: str, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        translate(flags)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        ("-alpha 1", "alpha (needs length_penalty: wu)"),
        ("-ignore_when_blocking a", "ignore_when_blocking (needs block_ngram_repeat)"),
        ("-phrase_table none", "phrase_table (needs replace_unk)"),
        ("-beam_size 1 -random_sampling_temp 2", "random_sampling_temp (needs random_sampling_"),
        ("-random_sampling_topk 3 -length_penalty avg", "without effect here: length_penalty (of"),
        ("-random_sampling_topk 3 -beam_size 7", "beam_size in random sampling as n_best 1"),
        ("-verbose -report_time -attn_debug -shard_size 0 -fp32 -dump_beam b -log_file l",
         "without effect here: verbose, report_time, attn_debug, shard_size, fp32, dump_beam, log"),
        ("-int8 -ratio 0.5", "int8 as 32-bit floats, ratio as a search that stops when"),
        ("-coverage_penalty wu -beta 2 -stepwise_penalty", "stepwise_penalty as a coverage"),
        ("-max_sent_length 20", "max_sent_length as max_length"),
        ("-gpu -beam_size 2", "-gpu without a value as -gpu 0"),
        ("-batch_type tokens -batch_size 4096", "batch_type tokens as batch_size 64 sentences"),
        ("-tgt s", "for its probabilities: onmt-entmax score -model m n -src "),
    ],
)  # fmt: skip
def test_flags_of_opennmt_that_mean_something_else_or_nothing(
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
    assert translate("-batch_type tokens -batch_size 4096").batch_size == 64


def test_targets_are_no_prefixes(
    translate: Translate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert translate("-tgt s").prefixes is None


def test_a_yaml_file_of_another_command_may_be_shared(tmp_path: Path) -> None:
    config = write_config(tmp_path, generator_function=None, global_attention_function=None)
    (tmp_path / "s").write_text("a\n")
    flags = ["-model", "m", "-src", str(tmp_path / "s"), "-output", str(tmp_path / "o")]
    read = translation_setup(["-config", str(config), *flags])
    assert read.batch_size == 16
    assert "without effect here: data, dropout, encoder_type" in read.notes[0]
