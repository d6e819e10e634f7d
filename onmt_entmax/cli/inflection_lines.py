"""The lines that `inflect` writes for a query: columns between tabs, or JSON."""

from onmt_entmax.errors import printable
from onmt_entmax.files import json_line
from onmt_entmax.inflector import Inflection


def as_tsv(answer: Inflection) -> str:
    """Return a prediction as lines of columns, one for each form.

    The columns are language, lemma, tags, rank, form, probability, certificate and warnings. If
    there is no form, one line has an empty form of probability 0.
    """
    question = answer.question
    query = [question.language, question.lemma, ";".join(question.tags)]
    certificate = [answer.level, "; ".join(answer.warnings)]
    rows = [
        [*query, str(rank), form.text, f"{form.prob:.6g}", *certificate]
        for rank, form in enumerate(answer.forms, 1)
    ]
    if not rows:
        rows = [[*query, "", "", "0", *certificate]]
    # A form may have a tab or a line end: its token is U+0009 or U+000A.
    return "\n".join("\t".join(map(printable, row)) for row in rows)


def as_json(answer: Inflection) -> str:
    """Return a prediction as one line of JSON."""
    return json_line(answer.to_dict()).removesuffix("\n")
