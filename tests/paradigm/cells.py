"""Cells of a paradigm, made without a model."""

import math

from onmt_entmax.inflection import Form, Inflection, Question
from tests.reports import certificate


def cell_of(
    *texts: str,
    tags: str = "N",
    lemma: str = "lemma",
    warnings: tuple[str, ...] = (),
    only: bool = False,
    total: float = 1.0,
) -> Inflection:
    """Return a cell whose forms are equally probable, and proven to be all that are possible.

    Args:
        texts: the forms.
        tags: those of the cell, such as `V;PST`.
        lemma: the word that the forms belong to.
        warnings: reasons why the forms may be wrong.
        only: whether the certificate is that of a single form.
        total: probability of all forms together; rounding may leave a little less than 1.
    """
    assert not only or len(texts) == 1, "a cell of one form"
    prob = total / max(len(texts), 1)
    forms = tuple(Form(text, math.log(prob), prob) for text in texts)
    question = Question("x", lemma, tuple(tags.split(";")))
    return Inflection(question, forms, certificate(proven=len(forms)), warnings, only)
