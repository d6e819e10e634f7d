"""The options of a command: those that this package declares, and OpenNMT-py's other ones.

OpenNMT-py has no table of its options: it adds them to a parser, from which types, defaults and
help are read here.
"""

import re
from argparse import Action
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from typing import Any

from onmt_entmax.config import COUNT, LIMIT, Option
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser
from onmt_entmax.options.stock import RENAMED
from onmt_entmax.rules import Rule, number, one_of, whole

_RATIO = number(0, 1)
_TEMPERATURE = number(0, 1000)
# Segmentations that are sampled from; 0 and 1 turn sampling off, and -1 samples from all. 512 is
# SentencePiece's limit.
_NBEST = whole(-1, 512, off=0)
# OpenNMT-py declares types but hardly any ranges. These are the rules of the options that are not
# declared as fields of this package's configurations, which have their rules with them.
_STOCK_RULES = {
    "model_task": one_of("seq2seq"),
    "model_type": one_of("text"),
    "data_type": one_of("text"),
    "src_seq_length": LIMIT,
    "tgt_seq_length": LIMIT,
    "switchout_temperature": _TEMPERATURE,
    "tokendrop_temperature": _TEMPERATURE,
    "tokenmask_temperature": _TEMPERATURE,
    "src_subword_nbest": _NBEST,
    "tgt_subword_nbest": _NBEST,
    "src_subword_alpha": _RATIO,
    "tgt_subword_alpha": _RATIO,
    "src_vocab_threshold": COUNT,
    "tgt_vocab_threshold": COUNT,
    "permute_sent_ratio": _RATIO,
    "rotate_ratio": _RATIO,
    "insert_ratio": _RATIO,
    "random_ratio": _RATIO,
    "mask_ratio": _RATIO,
    "poisson_lambda": number(0.1, 16),  # outside, OpenNMT-py seeks a span for ever
    "replace_length": whole(-1, 1),
}


def options_of(
    add_stock: Callable[[ArgumentParser], object], ours: Mapping[str, Option]
) -> dict[str, Option]:
    """Return the options of a command.

    Args:
        add_stock: adds OpenNMT-py's options to a parser, such as `train_opts`.
        ours: options that this package declares. They come first, in their order, and keep their
            rule and help; an option that is a list in OpenNMT-py becomes one.
    """
    options = dict(ours)
    for name, stock in _stock_options(add_stock):
        option = options.get(name, stock)
        options[name] = replace(
            option,
            default=_as_list(option.default) if stock.many else option.default,
            topic=option.topic or stock.topic,
        )
    return options


def _stock_options(
    add_stock: Callable[[ArgumentParser], object],
) -> Iterator[tuple[str, Option]]:
    """Yield the name and declaration of each option of OpenNMT-py, under this package's names."""
    parser = ArgumentParser(add_help=False)
    add_stock(parser)
    for group in parser._action_groups:  # argparse has no public list of them, nor of actions
        for action in group._group_actions:
            # The flag, not `action.dest`, which is `models` for `-model`.
            name = action.option_strings[0].lstrip("-")
            if name not in RENAMED:
                yield name, _stock_option(name, action, group.title or "")


def _stock_option(name: str, action: Action, topic: str) -> Option:
    """Return an option as OpenNMT-py declares it, with the rule of this package if it has one."""
    is_switch, is_list = action.nargs == 0, action.nargs in ("+", "*")
    kind: Any = bool if is_switch else action.type or str
    # A number with choices, `replace_length`, has a range above: `names` of a rule are words.
    words = tuple(action.choices or ()) if kind is str else ()
    text = " ".join((action.help or "").split())
    text = re.sub(r":math:\S+ in :cite:\S+ ", "", text)  # of OpenNMT-py's documentation
    return Option(
        _as_list(action.default) if is_list else action.default,
        _STOCK_RULES.get(name, Rule(kind, names=words)),
        help=text,
        topic=topic,
    )


def _as_list(default: Any) -> list[Any]:
    """Return the default of a list, which OpenNMT-py may declare as one value, or as none."""
    if isinstance(default, (list, tuple)):
        return list(default)
    return [] if default is None else [default]


def transform_options(names: Container[str] | None = None) -> dict[str, Option]:
    """Return the options that OpenNMT-py's transforms of these names read; None: of all."""

    def add(parser: ArgumentParser) -> None:
        # Subword transforms read this, too, but OpenNMT-py declares it with the vocabularies.
        parser.add_argument("-share_vocab", action="store_true")
        for name, transform in AVAILABLE_TRANSFORMS.items():
            if names is None or name in names:
                transform.add_options(parser)

    return options_of(add, {})


def is_mapping_as_text(option: Option) -> bool:
    """Return whether the value is the text of a mapping in Python's notation.

    An example is `src_onmttok_kwargs`. OpenNMT-py declares such an option as text, so only its
    default, `{'mode': 'none'}`, shows that it is a mapping.
    """
    return isinstance(option.default, str) and option.default.startswith("{")
