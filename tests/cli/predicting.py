"""Calls of `onmt-entmax predict` for tests, the rows of a table for them, and a model."""

from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli import predict
from tests.in_process import exit_status
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import task_options

SOURCES = ("ab", "abcd", "da", "c")
HEADED = ("word\tpronunciation", *(f"{source}\t" for source in SOURCES))  # without targets


def predicted(*arguments: object) -> int:
    """Run the command, with the model first, in this process; return the exit status."""
    return exit_status(predict.main, [str(word) for word in arguments])


class TableAndOutput(NamedTuple):
    """A table, and the file of its prediction, which may not be there yet."""

    table: Path
    output: Path


def predicted_at_once(folder: Path, *arguments: object) -> bytes:
    """Return the output of a prediction that nothing interrupts.

    Args:
        folder: receives the output, which is deleted.
        arguments: the arguments of the command but for `--output`, the model first.
    """
    output = folder / "whole.tsv"
    assert predicted(*arguments, "--output", output) == 0
    content = output.read_bytes()
    output.unlink()
    return content


def write_model_of_2023(folder: Path) -> Path:
    """Write a model of inflection with the columns of the shared task of 2023; return its folder.

    Its forms of `b` with `V;PST`, and of `bb` with `V`, differ between English and German.
    """
    source = ("lang=english", "lang=german", "+V", "+PST", *"ab▁")
    options = task_options(["source", "tags", "target"], target_order="right_to_left")
    seed = 25  # of the weights; the forms are not equal with this one
    return write_model(folder, seed, vocabularies_of(source, "ab▁"), end=1, options=options)
