"""Replace `<unk>` by words, as OpenNMT-py's options `replace_unk` and `phrase_table` do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.opennmt import DefaultTokens


def replace_unknown(
    tokens: Sequence[str],
    source: Sequence[str],
    attention: Tensor,
    phrase_table: Mapping[str, str],
) -> list[str]:
    """Return an output whose unknown tokens are the source words with the most attention.

    The method is that of Jean et al. (2015), "On Using Very Large Target Vocabulary", section
    4.1.3. They replace a token by the word that is aligned to it; here, attention decides, as in
    OpenNMT-py.

    Args:
        tokens: the output.
        source: tokens of its source, at least one.
        attention: weights, at least ``(len(tokens), len(source))``.
        phrase_table: target words for some source words; other source words are copied.
    """
    replaced = list(tokens)
    for step, token in enumerate(tokens):
        if token == DefaultTokens.UNK:
            word = source[int(attention[step, : len(source)].argmax())]
            replaced[step] = phrase_table.get(word, word)
    return replaced


def read_phrase_table(path: Path) -> dict[str, str]:
    """Read lines of `source word|||target word`; the first line for a source word counts.

    Raises:
        UserError: the file cannot be read, or a line has another form.
    """
    table: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        source, _, columns = line.partition("|||")
        target, _, _ = columns.partition("|||")  # others, such as probabilities, are ignored
        if not source.strip() or not target.strip():
            raise UserError(f"{path}: line {number} is not `source|||target`")
        table.setdefault(source.strip(), target.strip())
    return table
