"""Arguments of commands that compare models."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, counted
from onmt_entmax.rules import whole
from tools.papers.forced_steps import ParallelText

AddArgument = Callable[..., Any]  # the type of `argparse.ArgumentParser().add_argument`


def add_comparison(add: AddArgument) -> None:
    """Add the arguments of a command that compares models on parallel text."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="run or model folders to compare")
    add("--names", nargs="+", metavar="NAME", help="names of the models (default: folder names)")
    add("--source", type=Path, required=True, metavar="FILE", help="a sentence a line")
    add("--target", type=Path, required=True, metavar="FILE", help="their translations")
    add("--transforms", nargs="*", help="transforms of both files, instead of training's subwords")
    add("--limit", type=whole(1, 10**9), metavar="N", help="read the first N sentences")


def text_of(options: argparse.Namespace) -> ParallelText:
    """Return the text on which models are compared, from the options of `add_comparison`."""
    return ParallelText(options.source, options.target, options.transforms, options.limit)


def names_of(
    names: Sequence[str] | None, models: Sequence[Path], *, may_repeat: bool = False
) -> list[str]:
    """Return the names of the models or runs to compare; by default those of their folders.

    Args:
        names: those of `--names`; None: the option is not given.
        models: folders.
        may_repeat: whether several models may share a name, as runs of several seeds do.

    Raises:
        UserError: there are more or fewer names than models, or one is repeated and may not be.
    """
    chosen = list(names or [path.name for path in models])
    if len(chosen) != len(models):
        raise UserError(f"--names: {len(chosen)} for {counted(len(models), 'model')}")
    if not may_repeat and len(set(chosen)) < len(chosen):
        raise UserError("--names: the models need different names")
    return chosen
