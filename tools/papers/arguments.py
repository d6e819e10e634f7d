"""Arguments of commands that compare models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, counted
from onmt_entmax.rules import whole

Add = Callable[..., Any]  # `add_argument` of a parser


def add_comparison(add: Add) -> None:
    """Add the arguments of a command that compares models on parallel text."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="run or model folders to compare")
    add("--names", nargs="+", metavar="NAME", help="names of the models (default: folder names)")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--target", type=Path, required=True, metavar="FILE")
    add("--transforms", nargs="*", help="transforms of both files, instead of training's subwords")
    add("--limit", type=whole(1, 10**9), metavar="N", help="read the first N sentences")


def names_of(
    names: Sequence[str] | None, models: Sequence[Path], *, different: bool = True
) -> list[str]:
    """Return the names of the models or runs to compare; by default those of their folders.

    Args:
        names: those of `--names`; None: not given.
        models: folders.
        different: whether no two may be the same.

    Raises:
        UserError: there are not as many as models, or two are the same and should differ.
    """
    chosen = list(names or [path.name for path in models])
    if len(chosen) != len(models):
        raise UserError(f"--names: {len(chosen)} for {counted(len(models), 'model')}")
    if different and len(set(chosen)) < len(chosen):
        raise UserError("--names: the models need different names")
    return chosen
