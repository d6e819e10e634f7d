"""Options of several commands: the models of an inflector, and the symbols of its outputs."""

import argparse
from pathlib import Path
from typing import get_args

from onmt_entmax.config import TARGET_SYMBOLS, TargetSymbols
from onmt_entmax.files.released import pretrained
from onmt_entmax.inflector import Inflector

LISTING_BUDGET = 10_000
"""Decoder steps of the enumeration of `inflect --all`, as many as `Inflector` takes by default"""


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add `--model`, which may be repeated; the paths become `models`."""
    parser.add_argument(
        "--model",
        "-model",
        action="append",
        type=Path,
        default=[],
        metavar="MODEL",
        dest="models",
        help="run or model folder; repeat for several (default: the pretrained model)",
    )


def add_target_symbols(parser: argparse.ArgumentParser) -> None:
    """Add `--target_symbols`, which says what symbols an output may have."""
    parser.add_argument(
        "--target_symbols",
        choices=get_args(TargetSymbols),
        help="language: exclude symbols that neither training targets of the language nor the "
        f"source have; any: exclude none (default {TARGET_SYMBOLS})",
    )


def inflector_of(
    options: argparse.Namespace,
    n_best: int,
    *,
    budget: int = LISTING_BUDGET,
    matmul_dtype: str = "float32",
) -> Inflector:
    """Return an inflector of the models that a command line names, or else of the pretrained one.

    Args:
        options: `models`, `target_symbols` and `beam_size`.
        n_best: forms of a query; 0: all that are found.
        budget: decoder steps of the enumeration that follows a beam search if `n_best` is 0 and
            the beam did not find all forms; 0: there is no enumeration.
        matmul_dtype: type of products in LSTMs: "float32" or "bfloat16".
    """
    return Inflector(
        options.models or [pretrained()],
        n_best=n_best,
        beam_size=options.beam_size,
        budget=budget,
        target_symbols=options.target_symbols,
        matmul_dtype=matmul_dtype,
    )
