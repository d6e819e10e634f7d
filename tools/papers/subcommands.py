"""Subcommands of scripts, each with its own description."""

from __future__ import annotations

import argparse


def add_subcommand(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, description: str
) -> argparse.ArgumentParser:
    """Add a subcommand and return its parser, which prints the description as it is written.

    Args:
        commands: what `add_subparsers` of the script's parser returned.
        name: name of the subcommand.
        description: text of its help; the help of the script has the first line, too.
    """
    first_line = description.partition("\n")[0]
    return commands.add_parser(
        name,
        help=first_line.replace("%", "%%"),  # argparse would take it for a format
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
