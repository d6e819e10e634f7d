"""From options to the configuration of each module."""

import re
from pathlib import Path

import pytest
import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import register
from onmt_entmax.options.train import training_parser, training_setup
from onmt_entmax.options.translate import translation_setup
from onmt_entmax.search import Penalties, Sampling
from tests.commands import ROOT
from tests.toy import write_config


def setup(tmp_path: Path, **changes: object):
    return training_setup(["-config", str(write_config(tmp_path, **changes))])


@pytest.mark.parametrize(
    ("function", "alpha"), [("softmax", 1.0), ("entmax15", 1.5), ("sparsemax", 2.0)]
)
def test_names_become_numbers(tmp_path, function, alpha) -> None:
    model = setup(tmp_path, generator_function=function, global_attention_function=function).model
    assert (model.generator_alpha, model.global_attention_alpha) == (alpha, alpha)


def test_entmax_takes_its_alpha_from_its_option(tmp_path) -> None:
    changes = {"generator_function": "entmax", "global_attention_function": "entmax"}
    assert setup(tmp_path, **changes).model.generator_alpha == 1.5
    model = setup(tmp_path, **changes, generator_alpha=1.2, global_attention_alpha=3).model
    assert (model.generator_alpha, model.global_attention_alpha) == (1.2, 3.0)


TRANSFORMER = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "word_vec_size": 32,
    "heads": 4,
    "global_attention_function": "softmax",
}


def test_alphas_of_a_transformer_are_numbers_or_learned(tmp_path) -> None:
    functions = {"encoder": "learned", "decoder": "entmax", "context": "learned_shared"}
    changes = {f"{kind}_attention_function": name for kind, name in functions.items()}
    made = setup(
        tmp_path, **TRANSFORMER, **changes, decoder_attention_alpha=1.3, alpha_learning_rate=0.1
    )
    found = made.model
    assert (found.encoder_attention_alpha, found.decoder_attention_alpha) == ("learned", 1.3)
    assert found.context_attention_alpha == "learned_shared"
    assert (found.alpha_init_mean, found.alpha_init_std) == (0.0, 1.0)
    assert made.training.optimizer.alpha_learning_rate == 0.1
    assert not found.dense_attention
    assert setup(tmp_path, **TRANSFORMER).model.dense_attention


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_attention_function": "entmax14"}, "'entmax14' is not one of softmax, entmax15"),
        (
            {"context_attention_function": "entmax", "context_attention_alpha": 0.9},
            "context_attention_alpha: must be a number from 1 to",
        ),
        ({"context_attention_function": "entmax", "context_attention_alpha": "inf"}, "from 1 to"),
        (
            {"context_attention_function": "learned", "context_attention_alpha": 1.2},
            "only read with context_attention_function: entmax, not learned",
        ),
        (
            {"self_attn_type": "average", "decoder_attention_function": "entmax15"},
            "decoder_attention_function: needs self_attn_type: scaled-dot",
        ),
        (
            {"self_attn_type": "average", "decoder_attention_function": "learned"},
            "decoder_attention_function: needs self_attn_type: scaled-dot",
        ),
        ({"heads": 5}, "heads: must divide rnn_size 32"),
        ({"heads": 0}, "heads: must be a whole number from 1"),
        ({"alpha_init_std": 2}, "alpha_init_std: is only read with a function that is learned"),
        ({"alpha_learning_rate": 2}, "alpha_learning_rate: is only read with a function that is"),
        (
            {"encoder_attention_function": "learned", "alpha_learning_rate": 0},
            "alpha_learning_rate: must be above 0",
        ),
        ({"encoder_attention_function": "learned", "alpha_init_std": -1}, "alpha_init_std: must"),
        (
            {"encoder_attention_function": "learned", "alpha_init_mean": "nan"},
            "alpha_init_mean: must be a number from",
        ),
        (
            {"encoder_attention_function": "learned", "attention_warmup_steps": 9},
            "attention_warmup_steps: needs an attention function that is sparse and not learned",
        ),
        ({"global_attention_function": "entmax15"}, "a Transformer has encoder_attention_function"),
    ],
)
def test_attention_of_a_transformer_is_checked(tmp_path, changes, message) -> None:
    with pytest.raises(UserError, match=message) as caught:
        setup(tmp_path, **{**TRANSFORMER, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "context"])
@pytest.mark.parametrize("function", ["entmax15", "learned", "learned_shared"])
def test_a_recurrent_model_has_no_attention_of_a_transformer(tmp_path, kind, function) -> None:
    name = f"{kind}_attention_function"
    with pytest.raises(UserError, match=f"{name}: is of a Transformer; a recurrent decoder has"):
        setup(tmp_path, **{name: function})
    with pytest.raises(UserError, match="'learned' is not one of softmax, entmax15"):
        setup(tmp_path, global_attention_function="learned")


def test_sizes_for_both_sides_win(tmp_path) -> None:
    model = setup(tmp_path, layers=3, enc_layers=1, word_vec_size=8, src_word_vec_size=9).model
    assert (model.enc_layers, model.dec_layers) == (3, 3)
    assert (model.src_word_vec_size, model.tgt_word_vec_size) == (8, 8)


def test_several_processes_become_accumulation(tmp_path) -> None:
    changes = {"world_size": 4, "gpu_ranks": [0, 1, 2, 3], "accum_count": [2]}
    assert setup(tmp_path, **changes).training.accum_count == (8,)


def test_the_record_reads_back_to_the_same_setup(tmp_path) -> None:
    first = setup(tmp_path)
    path = tmp_path / "again.yaml"
    defaults = training_setup(["-config", str(write_config(tmp_path))]).record
    given = {name: value for name, value in first.record.items() if value == defaults[name]}
    path.write_text(yaml.safe_dump(given))
    again = yaml.safe_load(path.read_text())
    assert again == dict(first.record.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"generator_function": "entmax", "generator_alpha": 0.5}, "generator_alpha: must be"),
        ({"generator_function": "entmax", "generator_alpha": "inf"}, "generator_alpha: must be"),
        ({"generator_alpha": 1.2}, "only read with generator_function: entmax"),
        ({"global_attention_alpha": 1.2}, "only read with global_attention_function: entmax"),
        ({"copy_attn": True}, "copy_attn: not supported"),
        ({"encoder_type": "cnn"}, "encoder_type: 'cnn' is not supported"),
        ({"rnn_type": "SRU"}, "rnn_type: 'SRU' is not supported"),
        ({"rnn_size": 33}, "rnn_size: must be even"),
        ({"rnn_size": -3}, "rnn_size: must be -1 or a whole number from 1 to 1,000,000, not -3"),
        ({"dropout": 1.0}, "dropout: must be at least 0 and below 1"),
        ({"batch_size": 0}, "batch_size: must be a whole number from 1 to"),
        ({"label_smoothing_prior": "unigram"}, "only read with label_smoothing above 0"),
        ({"label_smoothing_prior": "even"}, "'even' is not one of uniform, unigram"),
        ({"average_decay": 1.0}, "average_decay: must be at least 0 and below 1"),
        ({"average_every": 0}, "average_every: must be a whole number from 1 to"),
        (
            {"attention_warmup_steps": -1},
            "attention_warmup_steps: must be a whole number from 0 to",
        ),
        (
            {"attention_warmup_steps": 9, "global_attention_function": "softmax"},
            "attention_warmup_steps: needs a sparse global_attention_function",
        ),
        ({"num_workers": -1}, "num_workers: must be a whole number from 0 to 256"),
        ({"on_nonfinite": "ignore"}, "on_nonfinite: 'ignore' is not one of stop, skip"),
        ({"keep_checkpoint": 0}, "keep_checkpoint: must be -1"),
        ({"share_embeddings": True}, "share_embeddings: needs share_vocab"),
        ({"encoder_type": "transformer"}, "a Transformer needs it on both sides"),
        ({"bridge": True, "layers": 2}, "bridge mixes the sentences"),
        ({"valid_epochs": 1}, "give valid_steps or valid_epochs"),
        (
            {"decay_method": "cosine", "train_steps": None, "train_epochs": 2},
            "cosine ends at train_steps",
        ),
        ({"dropout": [0.1, 0.2]}, "dropout: needs as many values as dropout_steps"),
        ({"data": "files"}, "data: expected at least one corpus"),
        ({"data": {"c": {"path_src": "a"}}}, "path_src: no such file: a"),
        ({"data": {"c": {"path_tgt": "a"}}}, "path_src is required"),
        ({"data": {"c": {"path_scr": "a"}}}, "no such key 'path_scr'; did you mean 'path_src'"),
        ({"data": {"c": {"src_feats": {}}}}, "src_feats is not supported"),
        ({"hidden_size": 8}, "no such option; OpenNMT-py 2.3.0 calls it rnn_size"),
        ({"num_threads": 8}, "no such option; only onmt_build_vocab has it"),
        ({"batch_size_multiple": 8}, "batch_size_multiple: not supported"),
        ({"gpu_ranks": [0, 1]}, "names 2 GPUs: start as many processes with torchrun"),
        ({"save_model": __file__}, "is a file; name a folder"),
        ({"src_vocab": "v", "tgt_vocab": "v"}, "not there yet: name two files"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(tmp_path, changes, message) -> None:
    with pytest.raises(UserError, match=message) as caught:
        setup(tmp_path, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"weight": 0}, "weight must be"),
        ({"transforms": ["bpee"]}, "no transform 'bpee'; did you mean 'bpe'"),
        ({"transforms": ["prefix"]}, "needs src_prefix and tgt_prefix"),
    ],
)
def test_corpora_are_checked(tmp_path, entry, message) -> None:
    config = yaml.safe_load(write_config(tmp_path).read_text())
    data = {"c": config["data"]["corpus_1"] | entry}
    with pytest.raises(UserError, match=message):
        setup(tmp_path, data=data)


def test_values_that_turn_something_off_are_accepted(tmp_path) -> None:
    made = setup(tmp_path, batch_size_multiple=1, train_from=None, gpu_ranks=[0])
    assert made.run.train_from is None
    assert setup(tmp_path, world_size=2, gpu_ranks=[0, 1]).run.gpu == 0


def test_the_search_of_a_translation(tmp_path) -> None:
    source = tmp_path / "s"
    source.write_text("a\n")
    arguments = ["-model", "m", "n", "-src", str(source), "-output", "o", "-beam_size", "7"]
    made = translation_setup([*arguments, "-stop", "optimal"])
    assert [str(model) for model in made.models] == ["m", "n"]
    assert (made.task.config.beam_size, made.task.config.stop) == (7, "optimal")
    with pytest.raises(UserError, match="beam_size: is not read in random sampling"):
        translation_setup([*arguments, "-random_sampling_topk", "3"])
    drawn = ["-random_sampling_topk", "3", "-beam_size", "1", "-length_penalty", "none"]
    assert translation_setup([*arguments, *drawn]).task.sampling == Sampling(topk=3)
    with pytest.raises(UserError, match="length_penalty: goes with a search"):
        translation_setup([*arguments, *drawn[:-1], "avg"])
    with pytest.raises(UserError, match="model: this option is required"):
        translation_setup(["-src", str(source)])
    with pytest.raises(UserError, match="-beam: no such option; did you mean 'beam_size'"):
        translation_setup(["-src", str(source), "-beam", "5"])
    with pytest.raises(UserError, match="-train_steps: no such option; onmt-entmax train has it"):
        translation_setup(["-src", str(source), "-train_steps", "5"])
    with pytest.raises(UserError, match="command line: tgt_prefix: give -tgt FILE"):
        translation_setup([*arguments, "-tgt_prefix"])
    with pytest.raises(UserError, match="or -config FILE with it"):
        translation_setup(["-src", str(source)])


def test_requests_and_limits_of_a_translation(tmp_path) -> None:
    source = tmp_path / "s"
    source.write_text("a\n")
    arguments = ["-model", "m", "-src", str(source), "-output", "o"]
    penalties = ["-length_penalty", "wu", "-alpha", "0.6", "-coverage_penalty", "summary"]
    made = translation_setup([*arguments, *penalties, "-beta", "0.2", "-ban_unk_token"])
    assert made.task.config.penalties == Penalties("wu", 0.6, "summary", 0.2)
    assert (made.task.ban_unknown, made.batch_size, made.gpu) == (True, 64, None)
    whole = translation_setup([*arguments, "-search", "enumerate", "-mass", "0.9", "-gpu", "0"])
    assert (whole.task.mass, whole.task.ban_unknown, whole.gpu) == (0.9, False, 0)
    exact = translation_setup([*arguments, "-search", "exact", "-budget", "77"])
    assert (exact.task.budget.expansions, exact.gpu) == (77, None)


def test_the_defaults_are_those_of_the_documents() -> None:
    known, checked = register(training_parser()), 0
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8").split("\n## ")[1]
    for keys, values in re.findall(r"^\| (`[^|]+`) \|([^|]+)\|", text, re.MULTILINE):
        names, told = re.findall(r"`(\w+)`", keys), values.strip().split(", ")
        for name, value in zip(names, told if len(told) > 1 else told * len(names), strict=True):
            if value and value.strip("`") not in known:  # not another option's value
                default = known[name].default
                shown = f"{default:g}" if isinstance(default, (int, float)) else str(default)
                assert shown == value.strip("`"), name
                checked += 1
    assert checked > 20


def test_epochs_have_no_limit_of_updates_unless_one_is_given(tmp_path) -> None:
    assert setup(tmp_path, train_epochs=2, train_steps=None).training.train_steps is None
    assert setup(tmp_path, train_epochs=2, train_steps=9).training.train_steps == 9


def test_what_is_not_set_is_the_same_each_time(tmp_path) -> None:
    made = setup(tmp_path, seed=-1)
    assert (made.run.seed, made.data.seed) == (0, 0)


def test_transforms_of_a_corpus_win_over_those_of_all(tmp_path) -> None:
    data = yaml.safe_load(write_config(tmp_path).read_text())["data"]
    data["own"] = data["corpus_1"] | {"transforms": []}
    data["other"] = data["corpus_1"] | {"transforms": ["bart"]}
    corpora = setup(tmp_path, data=data, transforms=["filtertoolong"]).data.corpora
    found = {corpus.name: corpus.transforms for corpus in corpora}
    assert found == {"corpus_1": ("filtertoolong",), "own": (), "other": ("bart",)}
