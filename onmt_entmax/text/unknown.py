"""Words for the unknown tokens of an output: those of the source that the model looked at.

After Jean et al. (2015), "On Using Very Large Target Vocabulary", section 4.1.3, with the attention
in the place of an alignment; as OpenNMT-py's `replace_unk` and `phrase_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import DefaultTokens


@dataclass(frozen=True)
class UnknownWords:
    """How unknown tokens are replaced.

    Attributes:
        phrase_table: a target word for some source words; any other word is copied.
    """

    phrase_table: Mapping[str, str]

    def replace(self, tokens: Sequence[str], source: Sequence[str], attention: Tensor) -> list[str]:
        """The tokens with words in the place of unknown ones.

        Args:
            tokens: an output.
            source: its source.
            attention: ``(at least len(tokens), at least len(source))`` weights of the steps.
        """
        replaced = list(tokens)
        for step, token in enumerate(tokens):
            if token == DefaultTokens.UNK:
                word = source[int(attention[step, : len(source)].argmax())]
                replaced[step] = self.phrase_table.get(word, word)
        return replaced


def read_phrase_table(path: Path) -> dict[str, str]:
    """Lines of `source word|||target word`; of one source word the first line counts.

    Raises:
        UserError: it cannot be read, or a line is not of this form.
    """
    table: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                source, bars, rest = line.partition("|||")
                # A third column, of probabilities say, is left unread.
                target = rest.split("|||")[0].strip()
                if not bars or not source.strip() or not target:
                    raise UserError(f"{path}: line {number} is not `source|||target`")
                table.setdefault(source.strip(), target)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    return table
