"""Pictures of a translator's outputs: their lattice, next tokens and attention."""

from collections.abc import Sequence
from typing import Any

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.reader import EncodedSource
from onmt_entmax.report.lattice import Lattice, build_lattice
from onmt_entmax.report.page import drawing
from onmt_entmax.translator import Translator

LIMIT = 100  # next tokens listed at a prefix; the rest is counted


def picture(
    translator: Translator, source: EncodedSource, outputs: Sequence[tuple[int, ...]]
) -> tuple[Lattice, Any]:
    """Return the lattice of the outputs of a source, and its drawing."""
    names = translator.vocabularies.target
    batch = make_batch([source.example], translator.vocabularies)
    lattice = build_lattice(translator.stepper, batch, outputs, limit=LIMIT)
    backwards = translator.reader.backwards
    tokens = source.copies.show(names.tokens)
    return lattice, drawing(lattice, source.words, tokens, names.eos, backwards)
