"""Next-word suggestion: the words that a model allows after those that are written already.

    python tools/suggest.py run/demo/model --source "lang=english +V +PST d r e a m" --prefix "d"

Prints every possible next token with its probability and, where only one is possible, all that
follows for certain: a writer need not type it (Figure 2 of Peters, Niculae and Martins 2019).
Source and prefix are tokens between spaces; `</s>` is the end. Without --prefix, prefixes are read
from the standard input, a line each, an empty line being the empty prefix; without --source the
first line is the source.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.files import text_lines
from onmt_entmax.suggester import Suggester, SuggestionError, Suggestions

END = "</s>"


def text_of(found: Suggestions, prefix: Sequence[str], limit: int) -> str:
    """Suggestions as they are printed.

    Args:
        found: the suggestions.
        prefix: the tokens written already.
        limit: how many continuations are listed; the rest is counted.
    """
    lines = []
    if found.excluded_at is not None:
        token = prefix[found.excluded_at]
        lines.append(f"the model excludes {token!r} (token {found.excluded_at + 1} of the prefix)")
    else:
        lines.append(f"prefix    {math.exp(found.log_prob):.6f}")
    for continuation in found.continuations[:limit]:
        lines.append(f"next      {continuation.prob:.6f}  {continuation.token}")
    if len(found.continuations) > limit:
        rest = found.continuations[limit:]
        mass = sum(continuation.prob for continuation in rest)
        lines.append(f"          {mass:.6f}  on {len(rest)} more")
    forced = [*found.completion, *([END] if found.complete else [])]
    lines.append(f"forced    {' '.join(forced) or '-'}")
    return "\n".join(lines)


def ask(suggester: Suggester, source: str | None, options: argparse.Namespace) -> None:
    """Answer prefixes from the standard input until it ends.

    A prefix that cannot be answered is told, and the next one is read.
    """
    talks = sys.stdin.isatty()
    lines = text_lines(sys.stdin.buffer, "standard input")
    while source is None or not source.strip():
        if talks:
            print("source: ", end="", flush=True)
        source = next(lines, None)
        if source is None:
            return
    while True:
        if talks:
            print("prefix: ", end="", flush=True)
        prefix = next(lines, None)
        if prefix is None:
            return
        try:
            found = suggester(source, prefix, options.max_length)
        except SuggestionError as error:
            print(f"suggest.py: {error}", file=sys.stderr)
        else:
            print(text_of(found, prefix.split(), options.top), flush=True)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a run or model folder")
    parser.add_argument("--source", metavar="TOKENS", help="the source; asked for if absent")
    parser.add_argument("--prefix", metavar="TOKENS", help="what is written; asked for if absent")
    parser.add_argument(
        "--max_length", type=int, default=100, metavar="N", help="longest output (default 100)"
    )
    parser.add_argument(
        "--top", type=int, default=20, metavar="N", help="list so many next tokens (default 20)"
    )
    options = parser.parse_args(arguments)
    if options.prefix is not None and options.source is None:
        parser.error("--prefix needs --source")
    if min(options.top, options.max_length) < 1:
        parser.error("--top and --max_length must be at least 1")
    return options


def main(arguments: Sequence[str]) -> int:
    """Suggest; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    suggester = Suggester(load(options.model))
    if options.prefix is None:
        ask(suggester, options.source, options)
    else:
        found = suggester(options.source, options.prefix, options.max_length)
        print(text_of(found, options.prefix.split(), options.top))
    return 0
