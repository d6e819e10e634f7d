"""Reading options from YAML files and flags: unknown names and wrong values are errors.

OpenNMT-py's parsers give the names, types and defaults of its options. They silently drop a
misspelt key, so the values are read here. The help and the JSON Schema list the same options.
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from onmt_entmax.config import COUNT, KINDS, LIMIT, CorpusConfig, Option, declared
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import ParseError, parse_yaml
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, train_opts, translate_opts
from onmt_entmax.rules import Rule, number, one_of, shown, whole

_LARGEST_FILE = 1 << 20  # bytes
_OFF: tuple[Any, ...] = (None, False, "", [], "none", "softmax")  # 0 is False

# Options that are refused, by the reason: those of OpenNMT-py 2.3.0, which may be given with their
# default, and those of other versions and of the authors' fork of OpenNMT-py, OpenNMT-entmax.
REFUSED: Mapping[str, str] = {
    name: reason
    for reason, names in {
        # OpenNMT-py 2.3.0
        "the configuration is in every model folder as config.yaml": "save_config",
        "source features are not supported": "src_feats_vocab feat_merge feat_vec_size "
        "feat_vec_exponent src_feats",
        "run onmt_build_vocab to see samples": "n_sample",
        "vocabularies are in every model folder as vocab.json": "dump_fields dump_transforms",
        "it is a pickle; give both_embeddings as text": "pre_word_vecs_enc pre_word_vecs_dec",
        "a model keeps the vocabularies it was trained with": "update_vocab",
        "convolutional models are not supported": "cnn_kernel_width",
        "graph encoders are not supported": "bridge_extra_node bidir_edges state_dim n_edge_types "
        "n_node n_steps src_ggnn_size",
        "alignment supervision is not supported": "lambda_align alignment_layer alignment_heads "
        "full_context_alignment",
        "copy attention mixes a second distribution into the output": "copy_attn copy_attn_type "
        "copy_attn_force reuse_copy_attn copy_loss_by_seqlength dynamic_dict",
        "coverage attention is not supported": "coverage_attn lambda_coverage",
        "only 32-bit floats are supported": "loss_scale apex_opt_level int8",
        "use gpu_ranks": "gpuid",
        "all that is printed comes from the first process": "gpu_verbose_level",
        "use train_epochs: 1": "single_pass",
        "use train_steps or train_epochs": "epochs",
        "use selection: loss or token_accuracy": "early_stopping_criteria",
        "truncated backpropagation is not supported": "truncated_decoder",
        "metrics.jsonl, TensorBoard or an -exactness_report hold what was measured": "log_file "
        "log_file_level exp_host exp dump_beam with_score beam_score_out force_support dec_support",
        "use selection; `onmt-entmax bleu` scores files of translations": "train_eval_steps "
        "train_metrics valid_metrics scoring_debug dump_preds report_bleu report_rouge",
        "use encoder_type: brnn": "brnn",
        "use max_length": "max_sent_length",
        "the search stops when its answer is proven": "ratio",
        "the coverage penalty ranks finished hypotheses": "stepwise_penalty",
        "`onmt-entmax report` shows the attention": "attn_debug align_debug attn_out",
        # other versions
        "OpenNMT-py 2.3.0 calls it rnn_size": "hidden_size",
        "only onmt_build_vocab has it": "dump_samples num_threads vocab_sample_queue_size",
        "a matrix has it: python -m tools.papers.tables run FILE": "base",
        # OpenNMT-entmax
        "use generator_function: entmax and generator_alpha": "loss_alpha",
        "alpha-entmax is exact here": "k bisect_iter global_attention_bisect_iter",
        "name corpora under data": "train_src train_tgt valid_src valid_tgt max_shard_size",
        "use freeze_word_vecs_enc": "fix_word_vecs_enc",
        "use freeze_word_vecs_dec": "fix_word_vecs_dec",
        "lower-case the files": "lower",
        "every epoch is shuffled": "shuffle",
        "every search is batched": "fast",
        "only text is supported": "src_dir audio_enc_pooling sample_rate window_size window_stride "
        "window image_channel_size features_vocabs_prefix",
    }.items()
    for name in names.split()
}
# Values of OpenNMT-entmax, and what replaces each.
_REPLACED = {"tsallis15": "entmax15", "tsallis": "entmax", "smart": "plateau"}

# Options of OpenNMT-py that are accepted and ignored, because no result depends on them: places and
# speeds of computations, averaging (always of probabilities) and a transform that is refused.
IGNORED = (
    "gpu_backend master_ip master_port max_generator_batches pool_factor save_data verbose "
    "report_time shard_size fp32 avg_raw_probs reversible_tokenization prior_tokenization"
).split()

_RATIO = number(0, 1)
# Rules of OpenNMT-py's options that no configuration has for a field.
_STOCK_RULES = {
    name: rule
    for names, rule in {
        "model_task": one_of("seq2seq"),
        "model_dtype": one_of("fp32"),
        "model_type data_type": one_of("text"),
        "batch_size_multiple": whole(1, 1),
        "src_seq_length tgt_seq_length": LIMIT,
        "switchout_temperature tokendrop_temperature tokenmask_temperature": number(0, 1000),
        "src_subword_nbest tgt_subword_nbest": whole(-1, 512, off=0),
        "src_subword_alpha tgt_subword_alpha": _RATIO,
        "src_vocab_threshold tgt_vocab_threshold": COUNT,
        "permute_sent_ratio rotate_ratio insert_ratio random_ratio mask_ratio": _RATIO,
        "poisson_lambda": number(0.1, 16),  # outside, OpenNMT-py seeks a span for ever
        "replace_length": whole(-1, 1),
    }.items()
    for name in names.split()
}


class OptionError(UserError):
    """A configuration that cannot be used; one line names the file or flag, the key and the fix."""


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    Attributes:
        values: by OpenNMT-py's names.
        origin: the source of each given value: the name of a file, or "command line".
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Whether the user set the option."""
        return name in self.origin

    def pick(self, kind: type) -> dict[str, Any]:
        """Return the options that are fields of a dataclass; lists as tuples."""
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.origin.get(name, 'default')}: {name}: {message}")


# --- the options of a command ------------------------------------------------------------------


def options_of(
    add_stock: Callable[[ArgumentParser], object], ours: Mapping[str, Option]
) -> dict[str, Option]:
    """Return the options of a command.

    Args:
        add_stock: adds OpenNMT-py's options to a parser, such as `train_opts`.
        ours: options that are declared here; they come first. OpenNMT-py decides which of them
            are lists.
    """
    parser = ArgumentParser(add_help=False)
    add_stock(parser)
    options = dict(ours)
    for group in parser._action_groups:
        for action in group._group_actions:
            name = max((text.lstrip("-") for text in action.option_strings), key=len)
            default, kind = action.default, bool if action.nargs == 0 else action.type or str
            rule = Rule(kind, names=tuple(action.choices or ()) if kind is str else ())
            text = re.sub(r":math:\S+ in :cite:\S+ ", "", " ".join((action.help or "").split()))
            topic = group.title or ""
            stock = Option(default, _STOCK_RULES.get(name, rule), text, topic)
            each = options.get(name, stock)
            default = each.default
            if action.nargs in ("+", "*") and not isinstance(default, list):
                default = list(default) if each.many else [default] * (default is not None)
            options[name] = replace(each, default=default, topic=each.topic or topic)
    return options


def transform_options() -> dict[str, Option]:
    """Return all options that OpenNMT-py's transforms read."""

    def add(parser: ArgumentParser) -> None:
        parser.add_argument("-share_vocab", action="store_true")
        for transform in AVAILABLE_TRANSFORMS.values():
            transform.add_options(parser)

    return options_of(add, {})


def transforms_of(recorded: Mapping[str, Any]) -> list[str]:
    """Return the transforms of all corpora that a training read, in order.

    Args:
        recorded: all options that its model folder records.
    """
    with suppress(AttributeError, TypeError):  # a stranger may have written them
        data = recorded.get("data") or {}
        lists = (corpus.get("transforms") or [] for corpus in (recorded, *data.values()))
        return [str(name) for name in dict.fromkeys(chain(*lists))]
    return []


def recorded_transform_options(recorded: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the transforms' options that a model folder records, checked as those of a YAML file.

    Args:
        recorded: all options of the folder.
        where: names the file in errors.

    Raises:
        OptionError: names the first option that is wrong.
    """
    return {
        name: read_value(option, recorded[name], f"{where}: {name}")
        if name in recorded
        else option.default
        for name, option in transform_options().items()
    }


# --- reading -----------------------------------------------------------------------------------


def read_options(options: Mapping[str, Option], arguments: Sequence[str]) -> Options:
    """Read `-config FILE` and the flags; a flag wins over the file, and over its rivals there.

    Args:
        options: those of the command.
        arguments: the command line, without the program's name.

    Raises:
        OptionError: names the first option that is wrong.
    """
    flags: dict[str, Any] = {}
    name = ""
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            option = _look_up(name, options, "command line: -")
            if option.many and name in flags:
                raise OptionError(f"command line: -{name}: name all values after one -{name}")
            flags[name] = [value] if equals else []
        elif not name:
            raise OptionError(f"command line: {word!r} does not follow an option such as -config")
        else:
            flags[name].append(word)
    for name, words in flags.items():
        if options[name].rule.kind is bool and not words:
            flags[name] = True
        elif not options[name].many:
            if len(words) != 1:
                raise OptionError(f"command line: -{name}: expected one value, got {len(words)}")
            (flags[name],) = words
    path = flags.pop("config", None)
    read: list[dict[str, Any]] = []
    for where, content in ((path, read_yaml(path) if path else {}), ("command line", flags)):
        read.append({})
        for key, value in content.items():
            option = _look_up(key if isinstance(key, str) else shown(key), options, f"{where}: ")
            value = read[-1][key] = read_value(option, value, f"{where}: {key}")
            if key in REFUSED and value != option.default:
                raise OptionError(f"{where}: {key}: not supported: {REFUSED[key]}")
    try:
        read[0] = without_rivals(*read)
    except UserError as error:
        raise OptionError(f"command line: {error}") from None
    given = read[0] | read[1]
    origin = {name: "command line" if name in read[1] else str(path) for name in given}
    values = {name: option.default for name, option in options.items()} | given | {"config": path}
    result = Options(values, origin)
    for name, option in options.items():
        if option.required and not values[name]:
            hint = "" if path else f"; give -{name}, or -config FILE with it"
            raise OptionError(f"{path or 'command line'}: {name}: this option is required{hint}")
        if option.needs and values[name] != option.default and not _holds(option.needs, values):
            raise result.error(name, f"is only read with {option.needs}")
    return result


def _holds(condition: str, values: Mapping[str, Any]) -> bool:
    """Whether one of several options, between "or", is on or has the value (or key) it names."""
    for each in condition.split(" or "):
        name, _, value = each.partition(": ")
        held = values[name]
        if (
            value in held
            if isinstance(held, dict)
            else held == value
            if value
            else held not in _OFF
        ):
            return True
    return False


def _look_up(name: str, options: Mapping[str, Option], where: str) -> Option:
    """Return the option of a name; if there is none, say what it may have been."""
    if name in options:
        return options[name]
    hint = REFUSED.get(name, "")
    if not hint:
        for command, add in (("train", train_opts), ("translate", translate_opts)):
            if name in options_of(add, {}):
                hint = f"onmt-entmax {command} has it"
    hint = f"; {hint}" if hint else nearest(name, options)
    raise OptionError(f"{where}{name:.80}: no such option{hint}")


def read_value(option: Option, value: Any, where: str) -> Any:
    """Return a value in the type of its option.

    Args:
        option: decides the type and range.
        value: as YAML reads it, or the words after a flag.
        where: begins the error.

    Raises:
        OptionError: the value does not fit.
    """
    if value in (None, "") and option.default in (None, ""):
        return option.default
    if not option.many:
        return _read_single(option.rule, value, where)
    values = value if isinstance(value, list) else [value]
    if option.default and not values:
        raise OptionError(f"{where}: expected at least one value")
    return [_read_single(option.rule, single, where) for single in values]


def _read_single(rule: Rule, value: Any, where: str) -> Any:
    read = value
    if isinstance(value, str) and rule.kind in (bool, dict):
        try:
            read = parse_yaml(value)
        except ParseError as error:
            raise OptionError(f"{where}: {error}") from None
    elif isinstance(value, str) and rule.kind in (int, float):
        for kind in (float, int):  # int last: large whole numbers stay exact
            with suppress(ValueError):
                read = kind(value)
    elif isinstance(value, bool) and "on" in rule.names:  # YAML 1.1 reads these words so
        read = "on" if value else "off"
    if rule.kind is bool and type(read) is int and read in (0, 1):
        read = bool(read)
    if rule.kind is int and isinstance(read, float) and read.is_integer():
        read = int(read)
    if rule.fits(read) and "\0" not in str(read):
        return float(read) if rule.kind is float else read
    if not isinstance(value, str):
        hint = "; put it between quotes" if rule.kind is str and value is not None else ""
    elif value in _REPLACED:
        hint = f"; OpenNMT-entmax's {value} is {_REPLACED[value]} here"
    else:
        hint = nearest(value, rule.names)
    raise OptionError(f"{where}: {rule}, not {shown(value)}{hint}")


def read_yaml(path: str) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises:
        OptionError: the file cannot be read, is too large, empty or not YAML, or has a key twice.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE:,} bytes")
        content = parse_yaml(text.decode())
    except FileNotFoundError:
        raise OptionError(no_such_file(path)) from None
    except (OSError, ValueError) as error:  # not UTF-8 or not YAML, too
        raise OptionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(content, dict):
        raise OptionError(f"{path}: expected `key: value` lines")
    return content


# --- options that exclude each other -----------------------------------------------------------

# Options on one side of a pair replace those on the other.
_RIVALS = (
    ({"train_steps"}, {"train_epochs"}),
    ({"valid_steps"}, {"valid_epochs"}),
    ({"both_embeddings"}, {"src_embeddings", "tgt_embeddings"}),
)
# An option of both sides, and those of each side. In one place, that of both sides wins.
SIDES = {
    "layers": ("enc_layers", "dec_layers"),
    "rnn_size": ("enc_rnn_size", "dec_rnn_size"),
    "word_vec_size": ("src_word_vec_size", "tgt_word_vec_size"),
}
# Options `NAME_function`; each reads its `NAME_alpha` with the value `entmax` alone.
FUNCTIONS = ("generator", "global_attention", *(f"{kind}_attention" for kind in KINDS))


def without_rivals(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that those of a later place leave in force.

    A later place is the command line after a YAML file, or a cell of a matrix after its base. In
    one place, `train_steps` and `train_epochs` both hold; other rivals are refused when read.

    Raises:
        UserError: `batch_size` would change its meaning.
    """
    dropped = {
        name
        for pair in _RIVALS
        for given, others in (pair, pair[::-1])
        if not given.isdisjoint(later)
        for name in others
    }
    dropped |= {
        f"{name}_alpha" for name in FUNCTIONS if later.get(f"{name}_function", "entmax") != "entmax"
    }
    left = {name: value for name, value in earlier.items() if name not in dropped}
    for both, sides in SIDES.items():
        if both in left and both not in later and not later.keys().isdisjoint(sides):
            size = left.pop(both)
            left |= dict.fromkeys(sides, size) if size != -1 else {}  # -1: not set
    before = earlier.get("batch_type", "sents")
    if later.get("batch_type", before) != before and "batch_size" in left.keys() - later.keys():
        raise UserError(
            f"batch_type: {later['batch_type']}: batch_size {left['batch_size']} counts {before}; "
            f"give batch_size too"
        )
    return left


# --- help and schema ---------------------------------------------------------------------------


def described(
    options: Mapping[str, Option], topics: Sequence[str], usage: str, arguments: Sequence[str]
) -> str | None:
    """Return the text that a command line asks for, or None.

    Args:
        options: those of the command.
        topics: headings of the short help, in order; `--help-all` adds the others.
        usage: the line after the name of the program, and what the command does.
        arguments: `-h` asks for the help, `--help-all` for all of it, `--schema` for a JSON Schema
            of the YAML file.

    Raises:
        OptionError: another argument stands beside `--schema`.
    """
    words = {word.lstrip("-").replace("_", "-") for word in arguments if word.startswith("-")}
    if "schema" in words:
        if len(arguments) > 1:
            raise OptionError(
                "--schema: stands alone, and prints; write to a file with --schema > FILE"
            )
        return json.dumps(schema(options), indent=2)
    if not words & {"h", "help", "help-all"}:
        return None
    lines = [
        f"usage: {sys.argv[0]} {usage}",
        "Options may also stand in the YAML file, without the dash; the command line wins.",
        "--help-all lists all options; --schema prints a JSON Schema for editors.",
    ]
    titles = [*topics, *(option.topic for option in options.values())]
    for title in dict.fromkeys(titles if "help-all" in words else topics):
        entries = []
        for name, each in options.items():
            rule, default = each.rule, each.default
            fixed = len(rule.names) == 1 or rule.low == rule.high
            if each.topic != title or fixed or name in {*REFUSED, *IGNORED}:
                continue
            text = each.help
            if rule.kind is str and rule.names:
                text += f" {{{', '.join(rule.names)}}}"
            if each.many:
                default = " ".join(map(str, default))
            if default not in (None, "") and rule.kind is not bool:
                text += f" ({default})"
            indented = textwrap.wrap(text, 68, break_on_hyphens=False)
            entries += [f"  -{name}".ljust(30) + indented[0], *(" " * 30 + x for x in indented[1:])]
        lines += ["", f"{title}:", *entries] if entries else []
    return "\n".join(lines)


def schema(options: Mapping[str, Option]) -> dict[str, Any]:
    """Return a JSON Schema of the YAML file of a command."""
    properties = {}
    for name, option in options.items():
        if name == "config":
            continue
        value, default = option.rule.schema(), option.default
        if name == "data":
            value["additionalProperties"] = schema(declared(CorpusConfig))
        elif name in REFUSED:
            value = {"const": default, "deprecated": True}
        if option.many:
            value = {"anyOf": [value, {"type": "array", "items": value}]}
        if default in (None, "") and not option.required:
            value = {"anyOf": [value, {"type": "null"}]}
        text = REFUSED.get(name) or " ".join(option.help.split())
        properties[name] = {
            **value,
            "description": text,
            "default": list(default) if option.many else default,
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": [name for name, option in options.items() if option.required],
        "additionalProperties": False,
    }
