"""The corpora of a training: the entries of the option `data`, and what their transforms read."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onmt_entmax.config import CorpusConfig, declared
from onmt_entmax.errors import nearest
from onmt_entmax.files import no_such_file
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.result import Options
from onmt_entmax.options.stock import REFUSED
from onmt_entmax.options.values import OptionError, read_value
from onmt_entmax.rules import shown


def read_corpora(options: Options) -> list[CorpusConfig]:
    """Return the entries of `data`, in order; those without `transforms` have the option's.

    Raises:
        OptionError: names the first entry that is wrong.
    """
    return [_Entry(options, name).read(entry) for name, entry in options["data"].items()]


class _Entry:
    """Reader of one entry of `data`.

    Args:
        options: of the training; their notes receive what the entry has without effect.
        name: key of the entry.
    """

    def __init__(self, options: Options, name: object) -> None:
        self._options = options
        self._name = name

    def read(self, entry: object) -> CorpusConfig:
        """Return the corpus of the entry.

        Raises:
            OptionError: names the corpus and the key that is wrong.
        """
        if not isinstance(self._name, str):
            text = f"{shown(self._name)}: must be text; put it between quotes"
            raise self._options.error("data", text)
        if not isinstance(entry, dict):
            raise self._error("must be a mapping with path_src and path_tgt")
        values = self._values(entry)
        for key in ("path_src", "path_tgt"):
            if not values.get(key):
                raise self._error("is required", key)
            if not os.path.isfile(values[key]):
                raise self._error(no_such_file(values[key]), key)
        values["transforms"] = tuple(values.get("transforms", self._options["transforms"]))
        return CorpusConfig(self._name, **self._with_prefixes(values))

    def _values(self, entry: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the values of the keys, each in its type."""
        keys = declared(CorpusConfig)
        values: dict[str, Any] = {}
        for key, value in entry.items():
            if key == "path_align":  # OpenNMT-py reads it with lambda_align, which is refused
                self._options.notes.ignored.append(f"path_align of {self._name}")
                continue
            if key == "src_feats":
                raise self._error(REFUSED["src_feats"], key)
            if key not in keys and key in self._options.values:
                text = "is an option of the whole file; write it at the start of a line"
                raise self._error(text, key)
            if key not in keys:
                raise self._error(f"no such key{nearest(str(key), keys)}", key)
            where = self._options.error("data", f"corpus {shown(self._name)}: {key}")
            values[key] = read_value(keys[key], value, str(where))
        return values

    def _with_prefixes(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values with both prefixes, if the transform `prefix` reads them."""
        prefixes = ("src_prefix", "tgt_prefix")
        given = [key for key in prefixes if key in values]
        if "prefix" in values["transforms"]:
            if len(given) < len(prefixes):
                raise self._error("the transform prefix needs src_prefix and tgt_prefix")
            return values | {key: values[key] or "" for key in prefixes}  # one side's may be empty
        if given:
            raise self._error("is only read with the transform prefix", given[0])
        return values

    def _error(self, message: str, key: object = None) -> OptionError:
        """Return the error for the entry, or for a key of it."""
        where = f"corpus {shown(self._name)}: " + ("" if key is None else f"{key}: ")
        return self._options.error("data", where + message)


def without_unread_transforms(options: Options, corpora: Sequence[CorpusConfig]) -> Options:
    """Return the options with the defaults of those that only transforms of no corpus read.

    Args:
        options: their notes receive the names of such options.
        corpora: with their transforms.
    """
    names = {name for corpus in corpora for name in corpus.transforms}
    read = set(transform_options(names))
    if "bart" in names:
        read.add("src_subword_type")  # which OpenNMT-py's bart reads, but does not declare
    values = dict(options.values)
    for name, option in transform_options().items():
        if name not in read and values[name] != option.default:
            options.notes.ignored.append(f"{name} (no transform reads it)")
            values[name] = option.default
    return replace(options, values=values)
