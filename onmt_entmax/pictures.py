"""Compute the pictures of a translator's outputs: their lattice, next tokens and attention."""

from collections.abc import Sequence
from typing import Any

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.reader import EncodedSource
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.lattice import Lattice, build_lattice
from onmt_entmax.report.page_drawing import drawing
from onmt_entmax.translator import Translator

_LISTED_TOKENS = 100  # next tokens listed at a prefix; the rest is counted


def lattice_of(
    translator: Translator, source: EncodedSource, outputs: Sequence[tuple[int, ...]]
) -> Lattice:
    """Return the lattice of outputs.

    Args:
        translator: the translator of the models.
        source: the source of the outputs.
        outputs: token ids as the model writes them, without start and end symbol; at least one,
            all different.
    """
    batch = make_batch([source.example], translator.vocabularies)
    return build_lattice(translator.stepper, batch, outputs, limit=_LISTED_TOKENS)


def picture(translator: Translator, source: EncodedSource, lattice: Lattice) -> dict[str, Any]:
    """Return the data of a lattice's pictures, see `report.page_drawing.drawing`.

    They have attention if the translator was made with `attention`.
    """
    vocabulary = translator.vocabularies.target
    tokens = source.copies.show(vocabulary.tokens)
    backwards = translator.reader.right_to_left
    return drawing(lattice, source.words, tokens, eos=vocabulary.eos, backwards=backwards)


def picture_of_answer(translator: Translator, line: str, answer: Answer) -> dict[str, Any] | None:
    """Return the data of the pictures of a line's answer; None if it has no output."""
    outputs = [decoded.hypothesis.tokens for decoded in answer.hypotheses]
    if not outputs:
        return None
    source = translator.reader.encode(translator.reader.preprocess(line).words)
    return picture(translator, source, lattice_of(translator, source, outputs))
