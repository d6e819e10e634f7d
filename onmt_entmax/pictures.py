"""Compute what the pages draw of a translator's outputs: lattice, next tokens and attention.

The data of such a picture is a drawing, which `report.page_drawing` describes.
"""

from collections.abc import Sequence
from typing import Any

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.reader import EncodedSource
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.lattice import Lattice, build_lattice
from onmt_entmax.report.page_drawing import drawing
from onmt_entmax.translator import Translator

_LISTED_TOKENS = 100  # next tokens that a drawing lists for a prefix; it counts the others


def answer_drawing(translator: Translator, line: str, answer: Answer) -> dict[str, Any] | None:
    """Return the drawing of a line's answer; None if it has no output."""
    outputs = [decoded.hypothesis.tokens for decoded in answer.hypotheses]
    if not outputs:
        return None
    source = translator.reader.encode(translator.reader.preprocess(line).words)
    return lattice_drawing(translator, source, lattice_of(translator, source, outputs))


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


def lattice_drawing(
    translator: Translator, source: EncodedSource, lattice: Lattice
) -> dict[str, Any]:
    """Return the drawing of a lattice.

    Args:
        translator: the translator of the models. The drawing has attention if the translator was
            made with `attention`.
        source: the source of the outputs.
        lattice: their lattice.
    """
    vocabulary = translator.vocabularies.target
    tokens = source.copies.show(vocabulary.tokens)
    backwards = translator.reader.right_to_left
    return drawing(lattice, source.words, tokens, eos=vocabulary.eos, backwards=backwards)
