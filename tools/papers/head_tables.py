"""Tables of the measures of attention heads, and what each measure is."""

from __future__ import annotations

import numpy as np

from onmt_entmax.nn.transformer import ATTENTION_KINDS
from tools.papers.corpus_measures import OFFSETS
from tools.papers.head_choice import POSITIONAL, Head, positional_heads, ranked
from tools.papers.head_summary import (
    ByHead,
    EncoderSummary,
    InterrogationSummary,
    KindSummary,
    Models,
    by_kind,
)
from tools.papers.markdown import markdown_table
from tools.papers.text_table import Table

DEFINITIONS = {
    "attended": "number of keys with a weight above zero, mean over the queries",
    "density": "share of the available keys with a weight above zero, mean over the queries; "
    "softmax is dense, even where a weight rounds to zero",
    "divergence": "Jensen-Shannon divergence between the heads of a layer, to the base of the "
    "number of keys (equation 11), mean over the queries with several keys",
    "positional head": "its largest weight is at the offset for at least "
    f"{100 * POSITIONAL:g} % of the tokens (Voita et al. 2019)",
    "confidence": "weight at the offset: mean over the tokens of a sentence, median over sentences",
    "cluster": "a word of several subwords, with its hyphens; any other token is its own cluster",
    "merging": "largest weight that a token gives to the rest of its cluster, in a cluster of one "
    "token to itself; mean over clusters (footnote 3)",
    "inside": "weight inside the current token's own cluster, mean over the tokens",
    "interrogation": "weight that interrogative words give to a final question mark",
    "elsewhere": "weight that they give to the last token of a sentence without one",
}


def page(models: Models) -> str:
    """Return the text of heads.md: definitions and all tables."""
    parts = ["# Attention heads", "Layers and heads are counted from 1."]
    parts.append(markdown_table(Table(["measure", "definition"], [*DEFINITIONS.items()])))
    parts += [overview(models), specialised(models), by_layer(models)]
    return "\n\n".join(parts) + "\n"


# --- kinds of attention ----------------------------------------------------------------------


def overview(models: Models) -> str:
    """Return a table of alphas, attended keys, densities and divergences."""
    headings = ["model"]
    for kind in ATTENTION_KINDS:
        headings += [
            f"{kind}: alpha",
            f"{kind}: attended",
            f"{kind}: density",
            f"{kind}: divergence",
        ]
    rows = []
    for name, model in models.items():
        row = [name]
        for measures in by_kind(model).values():
            row += _overview_cells(measures)
        rows.append(row)
    return markdown_table(Table(headings, rows))


def _overview_cells(measures: KindSummary) -> list[str]:
    """Return the range of alpha, and means over heads of the other measures in `overview`."""
    low, high = np.min(measures["alpha"]), np.max(measures["alpha"])
    return [
        f"{low:.3g}" if low == high else f"{low:.2f} to {high:.2f}",
        f"{np.mean(measures['attended']):.2f}",
        f"{np.mean(measures['density']):.1%}",
        f"{np.mean(measures['divergence']):.3f}",
    ]


def by_layer(models: Models) -> str:
    """Return a table of density and divergence by layer."""
    rows = []
    for name, model in models.items():
        for kind, measures in by_kind(model).items():
            layers = zip(measures["density_by_layer"], measures["divergence"], strict=True)
            for layer, (density, divergence) in enumerate(layers, 1):
                rows.append([name, kind, str(layer), f"{density:.1%}", f"{divergence:.3f}"])
    return markdown_table(Table(["model", "attention", "layer", "density", "divergence"], rows))


# --- heads of the encoder --------------------------------------------------------------------


def specialised(models: Models) -> str:
    """Return a table of positional heads, and one of the heads that merge or question most."""
    headings = ["model", "merging", "inside", "interrogation", "elsewhere", "words in questions"]
    largest = [[name, *_largest_cells(model["encoder"])] for name, model in models.items()]
    return "\n\n".join(
        [
            "Positional heads of the encoder, with alpha and confidence:",
            _positional(models),
            "Heads of the encoder with the largest value:",
            markdown_table(Table(headings, largest)),
        ]
    )


def _positional(models: Models) -> str:
    """Return a table of positional heads, a line for each model and offset that has some."""
    lines = []
    for name, model in models.items():
        for offset in OFFSETS:
            heads = positional_heads(model["encoder"], offset)
            if heads:
                sign = f"{offset:+d}" if offset else "0"
                lines.append([name, sign, ", ".join(map(_head_text, heads))])
    return markdown_table(Table(["model", "offset", "heads"], lines)) if lines else "none"


def _largest_cells(encoder: EncoderSummary) -> list[str]:
    """Return the cells of a model in the table of heads with the largest values."""
    alphas = encoder["alpha"]
    merging = ranked(encoder["merging"], alphas)[0]
    inside = ranked(encoder["inside_cluster"], alphas)[0]
    return [
        _head_text(merging),
        _head_text(inside),
        *_interrogation_cells(encoder["interrogation"], alphas),
    ]


def _interrogation_cells(questions: InterrogationSummary, alphas: ByHead) -> list[str]:
    """Return the head with most weight on question marks, its weight elsewhere, and the words."""
    on_question_mark = questions["weight_on_question_mark"]
    on_last_token = questions["weight_on_last_token"]
    words = str(questions["words_in_questions"])
    if on_question_mark is None:
        return ["none", "none", words]
    head = ranked(on_question_mark, alphas)[0]
    elsewhere = "none"
    if on_last_token is not None:
        elsewhere = f"{np.array(on_last_token)[head.indices]:.1%}"
    return [_head_text(head), elsewhere, words]


def _head_text(head: Head) -> str:
    """Return layer and head, with alpha and score."""
    return f"{head.layer}.{head.head} (alpha {head.alpha:.2f}): {head.score:.1%}"
