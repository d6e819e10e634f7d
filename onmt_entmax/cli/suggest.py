"""List the tokens that may follow a prefix, with their probabilities.

    onmt-entmax suggest run/demo/model --source "lang=english +V +PST d r e a m" --prefix "d"

Prints the probability of the prefix, every possible next token with its probability, and the tokens
that must follow, so that a writer need not type them (Peters, Niculae and Martins 2019, Figure 2).
`</s>` is the end of the output. An example, with a model of Turkish that writes from right to left:

    prefix    1
    next      0.858625  b
    next      0.141375  p
    forced    -

Source and prefix are read as `translate` reads texts. With subword transforms, the model's tokens
are subwords, and a prefix should end at the end of a word. Without --prefix, each line of the
standard input is a prefix; without --source, the first line is the source.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.dialogue import Dialogue
from onmt_entmax.cli.messages import warn
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.errors import printable
from onmt_entmax.rules import whole
from onmt_entmax.suggester import Suggester, TextSuggestion

END = "</s>"


def text_of(suggestion: TextSuggestion, limit: int) -> str:
    """Return a suggestion as text, in the lines that this file's docstring shows.

    Args:
        suggestion: a prefix, the tokens that may follow it, and those that must.
        limit: largest number of next tokens to list; the probabilities of the others are added.
    """
    lines = []
    excluded_at = suggestion.excluded_at
    if excluded_at is not None:
        token = suggestion.prefix[excluded_at]
        lines.append(f"the model excludes {token!r} (token {excluded_at + 1} of the prefix)")
    else:
        lines.append(f"prefix    {math.exp(suggestion.log_prob):.6g}")
    for following in suggestion.continuations[:limit]:
        lines.append(f"next      {following.prob:<8.6g}  {following.token}")
    rest = suggestion.continuations[limit:]
    if rest:
        mass = sum(following.prob for following in rest)
        lines.append(f"          {mass:<8.6g}  on {len(rest)} more")
    forced = list(suggestion.completion)
    if suggestion.complete:
        forced.append(END)
    lines.append(f"forced    {' '.join(forced) or '-'}")
    return "\n".join(map(printable, lines))


def _warn_of_unknown(suggestion: TextSuggestion) -> None:
    """Warn of source tokens that training never saw."""
    unknown = UnknownTokens()
    unknown.add(len(suggestion.source), suggestion.unknown, suggestion.unseen)
    warn(*unknown_warnings(unknown))


class _Completion:
    """Completes prefixes of one source; the first time, it warns of unknown tokens of the source.

    Args:
        suggester: the model.
        source: text of the source.
        max_length: largest length of prefix and completion together, in tokens.
        limit: largest number of next tokens to list.
    """

    def __init__(self, suggester: Suggester, source: str, max_length: int, limit: int) -> None:
        self._suggester = suggester
        self._source = source
        self._max_length = max_length
        self._limit = limit
        self._warned = False

    def __call__(self, prefix: str) -> str:
        """Return the suggestion for a prefix, as text.

        Raises:
            SuggestionError: the model cannot read the source or the prefix.
        """
        suggestion = self._suggester(self._source, prefix, self._max_length)
        if not self._warned:
            _warn_of_unknown(suggestion)
            self._warned = True
        return text_of(suggestion, self._limit)


def _typed_source(dialogue: Dialogue) -> str | None:
    """Return the first line of a dialogue that is not blank; None if there is none."""
    while (line := dialogue.read("source: ")) is not None:
        if line.strip():
            return line
    return None


def main(arguments: Sequence[str]) -> int:
    """Print the suggestions; return the exit status."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, whole(1, 10**6)
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("--source", metavar="TEXT", help="the source (default: first line of the input)")
    add("--prefix", metavar="TEXT", help="the prefix (default: read from the input, line by line)")
    add(
        "--max_length",
        type=count,
        default=100,
        metavar="N",
        help="largest number of tokens of prefix and completion together (default 100)",
    )
    add("--top", type=count, default=20, metavar="N", help="next tokens to list (default 20)")
    add(
        "--transforms",
        nargs="*",
        help="transforms of source and prefix (default: training's subwords)",
    )
    options = parser.parse_args(arguments)
    if options.prefix is not None and options.source is None:
        parser.error("--prefix needs --source")
    model = load(options.model)
    if model.right_to_left:
        warn("the model writes from right to left: a prefix begins with the last token of the text")
    suggester = Suggester(model, options.transforms)

    def completion_of(source: str) -> _Completion:
        return _Completion(suggester, source, options.max_length, options.top)

    if options.prefix is not None:
        print(completion_of(options.source)(options.prefix))
        return 0
    dialogue = Dialogue(parser.prog)
    source = options.source
    if source is None or not source.strip():
        source = _typed_source(dialogue)
    if source is not None:
        dialogue.answer_all(completion_of(source), "prefix: ")
    return 0
