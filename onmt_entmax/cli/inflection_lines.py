"""Write a prediction of `inflect` as lines of columns, or as a line of JSON."""

from onmt_entmax.errors import printable
from onmt_entmax.files import json_line
from onmt_entmax.inflector import Inflection


def as_tsv(answer: Inflection) -> str:
    """Return a prediction as lines of columns, one for each form.

    The columns are language, lemma, tags, rank, form, probability, certificate and warnings. If
    there is no form, a single line has an empty form with probability 0.
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
    # A form may contain a tab or a line end, if U+0009 or U+000A is a token.
    return "\n".join("\t".join(map(printable, row)) for row in rows)


def as_json(answer: Inflection) -> str:
    """Return a prediction as one line of JSON."""
    return json_line(answer.to_dict()).removesuffix("\n")
