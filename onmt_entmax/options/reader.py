"""Reading options from YAML files and flags: unknown names and wrong values are errors.

OpenNMT-py's parsers give the names, types and defaults of its options. They silently drop a
misspelt key, so the values are read here. The help and the JSON Schema list the same options.
"""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from onmt_entmax.config import COUNT, KINDS, LIMIT, CorpusConfig, Option, declared
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import no_such_file
from onmt_entmax.files.parsing import Layout, ParseError, parse_yaml
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, train_opts, translate_opts
from onmt_entmax.options.stock import (
    ALONE,
    EQUAL,
    IGNORED,
    NEAREST,
    REFUSED,
    RENAMED,
    UNREAD,
    VALUES,
)
from onmt_entmax.rules import Rule, number, one_of, shown, whole

_LARGEST_FILE = 1 << 20  # bytes
_OFF: tuple[Any, ...] = (None, False, "", [], "none", "softmax")  # 0 is False

_RATIO = number(0, 1)
# Rules of OpenNMT-py's options that no configuration has for a field.
_STOCK_RULES = {
    name: rule
    for names, rule in {
        "model_task": one_of("seq2seq"),
        "model_type data_type": one_of("text"),
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


@dataclass
class Notes:
    """The given options that are not obeyed to the letter.

    Attributes:
        ignored: options without effect.
        replaced: `X as Y` for options that are read as something else.
        repeated: keys that are given twice with the same value.
        warnings: sentences about options that others overrule.
    """

    ignored: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return at most one line for each kind of note."""
        kinds = {
            "read as OpenNMT-py does not": self.replaced,
            "without effect here": self.ignored,
            "given twice, with equal values": self.repeated,
        }
        return [f"{kind}: {', '.join(parts)}" for kind, parts in kinds.items() if parts]


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    Attributes:
        values: by OpenNMT-py's names.
        origin: the source of each given value: the name of a file, or "command line".
        notes: on the given options, for the user.
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]
    notes: Notes = field(default_factory=Notes)

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
    return {name: each for name, each in options.items() if name not in RENAMED}


def transform_options(names: Container[str] | None = None) -> dict[str, Option]:
    """Return the options that OpenNMT-py's transforms of these names read; None: of all."""

    def add(parser: ArgumentParser) -> None:
        parser.add_argument("-share_vocab", action="store_true")
        for name, transform in AVAILABLE_TRANSFORMS.items():
            if names is None or name in names:
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

    Of the file, only what no flag replaces is checked.

    Args:
        options: those of the command.
        arguments: the command line, without the program's name.

    Raises:
        OptionError: names the first option that is wrong.
    """
    notes, layout = Notes(), Layout()
    typed = _flags(options, arguments, notes)
    path = typed.pop("config", None)
    words = _renamed(typed, "command line: -")
    flags = _place(options, words, "command line", notes)
    written = read_yaml(path, layout) if path else {}
    file = _renamed(written, f"{path}: ")
    for name in file:
        _look_up(name, options, f"{path}: ", in_file=True)
    if (warning := changed_batch_size(file, flags)) is not None:
        notes.warnings.append(f"command line: {warning}")
    dropped = replaced_by(flags)
    left = {name: value for name, value in file.items() if name not in {*flags, *dropped}}
    read = without_rivals(_place(options, left, str(path), notes, layout), flags)
    notes.repeated += layout.repeats
    notes.replaced += [
        f"{name} as {' and '.join(RENAMED[name])}"
        for name, place in (*((n, words) for n in typed), *((n, left) for n in written))
        if name in RENAMED and not place.keys().isdisjoint(RENAMED[name])
    ]
    given = read | flags
    origin = {name: "command line" if name in flags else str(path) for name in given}
    values = {name: option.default for name, option in options.items()} | given | {"config": path}
    result = Options(values, origin, notes)
    for name, option in options.items():
        if option.required and not values[name]:
            hint = "" if path else f"; give -{name}, or -config FILE with it"
            raise OptionError(f"{path or 'command line'}: {name}: this option is required{hint}")
        if option.needs and values[name] != option.default and not _holds(option.needs, values):
            if name not in UNREAD:
                raise result.error(name, f"is only read with {option.needs}")
            notes.ignored.append(f"{name} (needs {option.needs})")
            values[name] = option.default
    return result


def _flags(options: Mapping[str, Option], arguments: Sequence[str], notes: Notes) -> dict[str, Any]:
    """Return the words of each flag: a list, or one word, or true for a switch.

    Raises:
        OptionError: an option is unknown, or has too few or too many values.
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
        option = _look_up(name, options, "command line: -")
        if option.rule.kind is bool and not words:
            flags[name] = True
        elif name in ALONE and not words:
            notes.replaced.append(f"-{name} without a value as -{name} {ALONE[name]}")
            flags[name] = ALONE[name]
        elif not option.many:
            if len(words) != 1:
                raise OptionError(f"command line: -{name}: expected one value, got {len(words)}")
            (flags[name],) = words
    return flags


def _renamed(content: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return the options of a place under their names here.

    Raises:
        OptionError: two names of one option have different values.
    """
    renamed: dict[str, Any] = {}
    for key, value in content.items():
        name = key if isinstance(key, str) else shown(key)
        names = RENAMED.get(name, (name,))
        for each in names:
            known = renamed.get(each)
            if value in (None, "") and each in renamed:
                continue
            if known not in (None, "") and known != value:
                old = next(n for n in content if n != key and each in RENAMED.get(n, (n,)))
                raise OptionError(
                    f"{where}{name}: is the same option as {old} here, with another value; "
                    "delete one"
                )
            renamed[each] = value
    return renamed


def _place(
    options: Mapping[str, Option],
    content: Mapping[str, Any],
    where: str,
    notes: Notes,
    layout: Layout | None = None,
) -> dict[str, Any]:
    """Return the options of one place, read and checked.

    Args:
        options: those of the command.
        content: values by name.
        where: names the place.
        notes: receives what is ignored or replaced.
        layout: of the YAML file, if the place is one.

    Raises:
        OptionError: names the first option that is wrong.
    """
    place: dict[str, Any] = {}
    for name, value in content.items():
        option = _look_up(name, options, f"{where}: ", in_file=layout is not None)
        text = option.rule.kind is str
        if name in IGNORED or name not in options:
            if value != option.default:
                notes.ignored.append(name)
        elif (
            layout is not None
            and not option.required
            and (value is None or (value == "" and not text))
        ):
            place[name] = option.default
            if option.default not in (None, ""):
                notes.ignored.append(f"{name} (empty)")
        elif isinstance(value, str) and (name, value) in EQUAL:
            place[name] = EQUAL[name, value]
            notes.replaced.append(f"{name} {value} as {place[name]}")
        else:
            if name in {*REFUSED, *NEAREST} and not _is_default(option, value):
                if name in REFUSED:
                    raise OptionError(f"{where}: {name}: not supported: {REFUSED[name]}")
                notes.replaced.append(f"{name} as {NEAREST[name]}")
                continue
            place[name] = read_value(option, value, f"{where}: {name}")
    lines = {} if layout is None else layout.lines
    for both, sides in SIDES.items():
        for side in sides:
            size = place.get(both, -1)
            if size != -1 and place.get(side, size) != size:
                first, second = (f" (line {lines[n]})" if n in lines else "" for n in (both, side))
                notes.warnings.append(
                    f"{where}: {both}: {size}{first} replaces {side}: {place[side]}{second}; "
                    "delete one"
                )
    return place


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


def _is_mapping_as_text(option: Option) -> bool:
    """Whether the value is the text of a mapping, such as of `src_onmttok_kwargs`."""
    return isinstance(option.default, str) and option.default.startswith("{")


def _is_default(option: Option, value: Any) -> bool:
    """Whether a value, of whatever type, is the default of its option."""
    with suppress(OptionError):
        return bool(read_value(option, value, "") == option.default)
    return False


def _look_up(name: str, options: Mapping[str, Option], where: str, in_file: bool = False) -> Option:
    """Return the option of a name; if there is none, say what it may have been.

    Args:
        name: as it is given, or its name here.
        options: those of the command.
        where: begins the error.
        in_file: whether a YAML file gives it, which several commands may share.

    Raises:
        OptionError: there is no such option.
    """
    for each in (name, *RENAMED.get(name, ())[:1]):
        if each in options:
            return options[each]
    hint = REFUSED.get(name, "")
    if name in IGNORED:
        return _UNKNOWN
    if not hint:
        for command, add in (("train", train_opts), ("translate", translate_opts)):
            if name in options_of(add, {}):
                if in_file:
                    return _UNKNOWN
                hint = f"onmt-entmax {command} has it"
    hint = f"; {hint}" if hint else nearest(name, options)
    raise OptionError(f"{where}{name:.80}: no such option{hint}")


# Stands for an option that the command does not have, and whose value is not read.
_UNKNOWN = Option([], Rule(str))


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
    if isinstance(value, dict) and _is_mapping_as_text(option):
        value = str(value)
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
    elif value in VALUES:
        hint = f"; {VALUES[value]}"
    elif rule.kind is dict:
        hint = "; name corpora under data, with path_src and path_tgt of each"
    else:
        hint = nearest(value, rule.names)
    raise OptionError(f"{where}: {rule}, not {shown(value)}{hint}")


def read_yaml(path: str, layout: Layout | None = None) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Args:
        path: of the file.
        layout: receives the places of keys; a key may then repeat with an equal value.

    Raises:
        OptionError: the file cannot be read, is too large, empty or not YAML, or has a key twice.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise ValueError(f"larger than {_LARGEST_FILE:,} bytes")
        content = parse_yaml(text.decode(), layout)
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


def replaced_by(later: Mapping[str, Any]) -> set[str]:
    """Return the options of an earlier place that others in a later place replace as a whole."""
    replaced = {
        name
        for pair in _RIVALS
        for given, others in (pair, pair[::-1])
        if not given.isdisjoint(later)
        for name in others
    }
    return replaced | {
        f"{name}_alpha" for name in FUNCTIONS if later.get(f"{name}_function", "entmax") != "entmax"
    }


def without_rivals(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an earlier place that those of a later place leave in force.

    A later place is the command line after a YAML file, or a cell of a matrix after its base. In
    one place, `train_steps` and `train_epochs` both hold; other rivals are refused when read.
    """
    dropped = replaced_by(later)
    left = {name: value for name, value in earlier.items() if name not in dropped}
    for both, sides in SIDES.items():
        if both in left and both not in later and not later.keys().isdisjoint(sides):
            size = left.pop(both)
            left |= dict.fromkeys(sides, size) if size != -1 else {}  # -1: not set
    return left


def changed_batch_size(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str | None:
    """Return a message if a later place changes what `batch_size` of an earlier one counts."""
    before = earlier.get("batch_type", "sents")
    if (
        later.get("batch_type", before) == before
        or "batch_size" not in earlier.keys() - later.keys()
    ):
        return None
    size, after = earlier["batch_size"], later["batch_type"]
    return f"batch_type: {after}: batch_size {size} counted {before}; give batch_size too"


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
            if each.topic != title or fixed or name in {*REFUSED, *IGNORED, *NEAREST}:
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
    properties: dict[str, Any] = {}
    for name, option in options.items():
        if name == "config":
            continue
        value, default = option.rule.schema(), option.default
        if name == "data":
            value["additionalProperties"] = schema(declared(CorpusConfig))
        elif name in REFUSED:
            value = {"const": default, "deprecated": True}
        if equal := [word for key, word in EQUAL if key == name]:
            value = {"anyOf": [value, {"enum": equal, "deprecated": True}]}
        if _is_mapping_as_text(option):
            value = {"anyOf": [value, {"type": "object"}]}
        if option.many:
            value = {"anyOf": [value, {"type": "array", "items": value}]}
        if not option.required:
            value = {"anyOf": [value, {"type": "null"}]}
        if name in IGNORED:
            value = {"deprecated": True}
        text = REFUSED.get(name) or " ".join(option.help.split())
        properties[name] = {
            **value,
            "description": text,
            "default": list(default) if option.many else default,
        }
    if "config" in options:  # not of the keys of a corpus
        for name, (first, *_) in RENAMED.items():
            if first in properties:
                properties[name] = {**properties[first], "deprecated": True}
        for name in {*IGNORED, *options_of(train_opts, {}), *options_of(translate_opts, {})}:
            properties.setdefault(name, {"deprecated": True})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": [name for name, option in options.items() if option.required],
        "additionalProperties": False,
    }
