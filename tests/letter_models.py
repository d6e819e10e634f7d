"""Random models of three languages of letters, which record the target symbols of two of them."""

import json
from collections.abc import Mapping
from pathlib import Path

from onmt_entmax.files.checksums import write_list
from onmt_entmax.strings.copying import PLACEHOLDERS
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options

LANGUAGES = ("lang=x", "lang=y", "lang=z")
LETTERS = "abcd"
SEEN: Mapping[str, str] = {"lang=x": "ab", "lang=y": "cd"}
"""The target letters that each language had in training, as far as they are recorded."""


def _record_symbols(folder: Path, seen: Mapping[str, str] | None) -> Path:
    """Record the target symbols of languages in a model folder, and return it.

    None removes the record: models of earlier versions have none.
    """
    path = folder / "vocab.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop("seen_targets", None)
    if seen is not None:
        content["seen_targets"] = {name: " ".join(symbols) for name, symbols in seen.items()}
    path.write_text(json.dumps(content), encoding="utf-8")
    write_list(folder)
    return folder


def write_letters(
    folder: Path, seed: int = 12, seen: Mapping[str, str] | None = SEEN, **options: object
) -> Path:
    """Write a random model of letters with languages and the tag V; return its folder.

    Args:
        folder: folder to write.
        seed: seed of the weights.
        seen: the target letters to record, by language; None: there is no record.
        options: other options of the model.
    """
    task = task_options(["source", "target", "tags"], **options)
    vocabularies = vocabularies_of([*LANGUAGES, "+V", *LETTERS], LETTERS)
    model = write_model(folder, seed, vocabularies, end=1, options=task)
    return _record_symbols(model, seen)


def write_copying_letters(folder: Path, seed: int) -> Path:
    """Write a model that copies symbols, too: its source vocabulary lacks the letter d."""
    task = task_options(["source", "target", "tags"], copy_frequency=2)
    placeholders = PLACEHOLDERS[:2]
    vocabularies = vocabularies_of(
        [*LANGUAGES, "+V", *LETTERS[:-1], *placeholders], [*LETTERS, *placeholders]
    )
    return _record_symbols(write_model(folder, seed, vocabularies, end=1, options=task), SEEN)
