"""Calls of `onmt-entmax predict` for tests, the rows of a table for them, and a model."""

from pathlib import Path

from onmt_entmax.cli import predict
from tests.in_process import exit_status
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options

SOURCES = ("ab", "abcd", "da", "c")
HEADED = ("word\tpronunciation", *(f"{source}\t" for source in SOURCES))  # without targets


def predicted(model: Path, *arguments: object) -> int:
    """Run the command in this process; return the exit status."""
    return exit_status(predict.main, [str(word) for word in (model, *arguments)])


def write_model_of_2023(folder: Path) -> Path:
    """Write a model of inflection with the columns of the shared task of 2023; return its folder.

    Its forms of `b` with `V;PST`, and of `bb` with `V`, differ between English and German.
    """
    source = ("lang=english", "lang=german", "+V", "+PST", *"ab▁")
    options = task_options(["source", "tags", "target"], target_order="right_to_left")
    seed = 25  # of the weights; the forms are not equal with this one
    return write_model(folder, seed, vocabularies_of(source, "ab▁"), end=1, options=options)
