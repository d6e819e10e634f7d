"""The corpora of a training: the entries of the option `data`, and what their transforms read."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.config import CorpusConfig, Option, declared
from onmt_entmax.errors import nearest
from onmt_entmax.files import no_such_file
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.given import Options
from onmt_entmax.options.stock import REFUSED
from onmt_entmax.options.values import OptionError, read_value
from onmt_entmax.rules import shown

_ALIGNMENTS = "path_align"  # OpenNMT-py reads it with lambda_align, which is refused


def read_corpora(options: Options) -> list[CorpusConfig]:
    """Return the entries of `data`, in order; those without `transforms` have the option's.

    Raises:
        OptionError: names the first entry that is wrong.
    """
    return [_read_entry(options, name, entry) for name, entry in options["data"].items()]


def ignored_keys(corpora: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """Return key and corpus of each key without effect, for a note.

    Args:
        corpora: the entries of `data`, which `read_corpora` has checked.
    """
    return [f"{_ALIGNMENTS} of {name}" for name, entry in corpora.items() if _ALIGNMENTS in entry]


def unread_transform_options(
    values: Mapping[str, Any], corpora: Sequence[CorpusConfig]
) -> dict[str, Option]:
    """Return the options that are not at their defaults, and that no transform of a corpus reads.

    Args:
        values: values of all options.
        corpora: corpora with their transforms.
    """
    names = {name for corpus in corpora for name in corpus.transforms}
    read = set(transform_options(names))
    if "bart" in names:
        read.add("src_subword_type")  # which OpenNMT-py's bart reads, but does not declare
    return {
        name: option
        for name, option in transform_options().items()
        if name not in read and values[name] != option.default
    }


def _read_entry(options: Options, name: object, entry: object) -> CorpusConfig:
    """Return the corpus of an entry of `data`.

    Raises:
        OptionError: names the corpus and the key that is wrong.
    """
    if not isinstance(name, str):
        raise options.error("data", f"{shown(name)}: must be text; put it between quotes")
    where = f"{options.where('data')}: corpus {shown(name)}"
    if not isinstance(entry, dict):
        raise OptionError(f"{where}: must be a mapping with path_src and path_tgt")
    values = {
        key: read_value(_option_of(key, options, where), value, f"{where}: {key}")
        for key, value in entry.items()
        if key != _ALIGNMENTS
    }
    for key in ("path_src", "path_tgt"):
        if not values.get(key):
            raise OptionError(f"{where}: {key}: is required")
        if not os.path.isfile(values[key]):
            raise OptionError(f"{where}: {key}: {no_such_file(values[key])}")
    values["transforms"] = tuple(values.get("transforms", options["transforms"]))
    return CorpusConfig(name, **_with_prefixes(values, where))


def _option_of(key: object, options: Options, where: str) -> Option:
    """Return the declaration of a key of an entry.

    Args:
        key: key of the entry.
        options: options of the whole file.
        where: beginning of the error.

    Raises:
        OptionError: there is no such key.
    """
    keys = declared(CorpusConfig)
    if key in keys:
        return keys[key]
    if key == "src_feats":
        reason = REFUSED["src_feats"]
    elif key in options.values:
        reason = "is an option of the whole file; write it at the start of a line"
    else:
        reason = f"no such key{nearest(str(key), keys)}"
    raise OptionError(f"{where}: {key}: {reason}")


def _with_prefixes(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the values of an entry with both prefixes, if its transform `prefix` reads them.

    Raises:
        OptionError: if a prefix is missing, or nothing reads one.
    """
    prefixes = ("src_prefix", "tgt_prefix")
    present = [key for key in prefixes if key in values]
    if "prefix" in values["transforms"]:
        if len(present) < len(prefixes):
            raise OptionError(f"{where}: the transform prefix needs src_prefix and tgt_prefix")
        return values | {key: values[key] or "" for key in prefixes}  # an empty one is allowed
    if present:
        raise OptionError(f"{where}: {present[0]}: is only read with the transform prefix")
    return values
