"""List the tokens that may follow a prefix, with their probabilities.

    onmt-entmax suggest run/demo/model --source "lang=english +V +PST d r e a m" --prefix "d"

Prints every possible next token and, if there is only one, all tokens that must follow, which a
writer need not type (Peters, Niculae and Martins 2019, Figure 2); `</s>` is the end. Source and
prefix are read as `translate` reads texts: with subword transforms the model's tokens are subwords,
and a prefix should end with a word. Without --prefix, each line of the standard input is a
prefix; without --source, the first line is the source.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import printable
from onmt_entmax.files import text_lines
from onmt_entmax.rules import whole
from onmt_entmax.suggester import Suggester, SuggestionError, Suggestions

END = "</s>"


def text_of(found: Suggestions, prefix: Sequence[str], limit: int) -> str:
    """Return suggestions as text.

    Args:
        found: the suggestions.
        prefix: the tokens before them.
        limit: how many continuations to list; the rest is summed.
    """
    lines = []
    if found.excluded_at is not None:
        token = prefix[found.excluded_at]
        lines.append(f"the model excludes {token!r} (token {found.excluded_at + 1} of the prefix)")
    else:
        lines.append(f"prefix    {math.exp(found.log_prob):.6g}")
    for continuation in found.continuations[:limit]:
        lines.append(f"next      {continuation.prob:<8.6g}  {continuation.token}")
    if len(found.continuations) > limit:
        rest = found.continuations[limit:]
        mass = sum(continuation.prob for continuation in rest)
        lines.append(f"          {mass:<8.6g}  on {len(rest)} more")
    forced = [*found.completion, *([END] if found.complete else [])]
    lines.append(f"forced    {' '.join(forced) or '-'}")
    return "\n".join(map(printable, lines))


def warn_of_unknown(found: Suggestions) -> None:
    """Warn of source tokens that training never saw."""
    unknown = UnknownTokens()
    unknown.add(len(found.source), found.unknown, found.unseen)
    warn(*unknown.warnings())


def converse(model: LoadedModel, options: argparse.Namespace) -> None:
    """Complete prefixes from the standard input until it ends; errors do not end it."""
    suggester, warned = Suggester(model, options.transforms), False
    source, talks = options.source, sys.stdin.isatty()
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
            print(f"{options.program}: {printable(str(error))}", file=sys.stderr)
        else:
            if not warned:
                warn_of_unknown(found)
                warned = True
            print(text_of(found, found.prefix, options.top), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the suggestions; return the exit status."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, whole(1, 10**6)
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("--source", metavar="TEXT", help="the source (default: read from input)")
    add("--prefix", metavar="TEXT", help="the prefix (default: read from input)")
    add("--max_length", type=count, default=100, metavar="N", help="longest output (default 100)")
    add("--top", type=count, default=20, metavar="N", help="next tokens to list (default 20)")
    add("--transforms", nargs="*", help="transforms of both, instead of training's subwords")
    parser.set_defaults(program=parser.prog)
    options = parser.parse_args(arguments)
    if options.prefix is not None and options.source is None:
        parser.error("--prefix needs --source")
    model = load(options.model)
    if model.right_to_left:
        warn("the model writes from right to left, and so are prefixes read: last token first")
    if options.prefix is None:
        converse(model, options)
    else:
        found = Suggester(model, options.transforms)(
            options.source, options.prefix, options.max_length
        )
        warn_of_unknown(found)
        print(text_of(found, found.prefix, options.top))
    return 0
