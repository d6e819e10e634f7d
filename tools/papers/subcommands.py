"""Subcommands of scripts, each with its own description."""

from __future__ import annotations

import argparse
from typing import Any


def add_subcommand(commands: Any, name: str, description: str) -> argparse.ArgumentParser:
    """Add a subcommand and return its parser, which prints the description as it is written.

    Args:
        commands: what `add_subparsers` of the script's parser returned.
        name: name of the subcommand.
        description: text of its help; the help of the script has the first line, too.
    """
    first_line = description.partition("\n")[0]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=first_line.replace("%", "%%"),  # argparse would take it for a format
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser
