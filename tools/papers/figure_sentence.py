"""Models run along a sentence, for the figures of attention and of forced decoding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.report.lattice import Node, build_lattice
from onmt_entmax.translator import Translator

LISTED = 8  # tokens of each distribution that are listed; the rest is summed


class Sentence(NamedTuple):
    """A source, a target, and a model's distributions along the target.

    Attributes:
        source: its tokens.
        target: its tokens, and the end symbol.
        nodes: the distribution at each target token.
        names: the target vocabulary, in the order of ids.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]


def sentence(
    folders: Sequence[Path],
    source: str,
    target: str | None = None,
    transforms: Sequence[str] | None = None,
) -> Sentence:
    """Run models along a target, or along their own best output if there is none.

    Args:
        folders: folders of the models, which are averaged.
        source: text.
        target: text.
        transforms: transforms of both texts, instead of those of the training.

    Raises:
        UserError: a model cannot be read, the source is empty, or no output finished.
    """
    translator = Translator.from_folders(folders, transforms=transforms, attention=True)
    vocabulary = translator.vocabularies.target
    source_tokens, target_tokens = translator.reader.preprocess(source, target or "")
    if not source_tokens:
        raise UserError("--source: there is no word in it")
    if target is None:
        target_tokens = _best_output(translator, source)
    example = translator.reader.encode(source_tokens).example
    batch = make_batch([example], translator.vocabularies)
    target_ids = vocabulary.encode(target_tokens)
    lattice = build_lattice(translator.stepper, batch, [target_ids], limit=LISTED)
    # People read from left to right, whatever the order in which the model writes.
    order = -1 if translator.reader.right_to_left else 1
    return Sentence(
        source=tuple(source_tokens),
        target=(*target_tokens, "</s>")[::order],
        nodes=lattice.nodes[::order],
        names=vocabulary.tokens,
    )


def _best_output(translator: Translator, source: str) -> list[str]:
    """Return the tokens of the models' best output.

    Raises:
        UserError: none has finished.
    """
    answer = next(translator.answers([source]))
    if not answer.hypotheses:
        raise UserError("no output of the model finished; give a --target")
    return translator.vocabularies.target.decode(answer.hypotheses[0].hypothesis.tokens)
