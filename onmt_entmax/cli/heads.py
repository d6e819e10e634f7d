"""Analyse the attention heads of Transformers (Correia, Niculae and Martins 2019, section 5).

    onmt-entmax heads run/softmax run/entmax15 run/learned --names softmax 1.5-entmax learned \\
        --language de --out run/heads \\
        --source run/mt/multi30k/val.de --target run/mt/multi30k/val.en

The models are forced along the targets. It prints a table, and writes to FOLDER

    heads.json, heads.md   all measures of all heads; the tables
    alphas                 histograms of the heads' alphas (Figures 3, 11)
    trajectories           learned alphas over training, of the last run folder that has some
                           (Figure 2)
    densities              share of the tokens that get attention (Figures 4, 12, 14)
    layers                 the same by layer, a line for each head (Figure 5)
    divergence             Jensen-Shannon divergence between heads (Figures 6, 13)
    positional             the surest head that attends to the token before (Figure 7)
    merging                the head that merges subwords most (Figure 8)
    interrogation          the head that attends most to question marks (Figure 9)
    contrast               one head on two sentences of equal length (Figure 10)

pictures as PDF and PNG. The definition of each measure stands in heads.md. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.ending import following
from onmt_entmax.cli.sparsity import comparing_parser
from onmt_entmax.errors import UserError
from onmt_entmax.figures import head_pictures as pictures
from onmt_entmax.figures.curves import read_metrics
from onmt_entmax.figures.head_pictures import Shown
from onmt_entmax.figures.heads import (
    INTERROGATIVES,
    OFFSETS,
    Attended,
    Head,
    HeadMeasures,
    attend,
    clusters,
    head_alphas,
    is_question,
    measure,
    most_varied,
    positional_heads,
    ranked,
)
from onmt_entmax.figures.sparsity import Pair, read
from onmt_entmax.figures.style import check_folder, model_names, prepare, write_figure
from onmt_entmax.files import write_text
from onmt_entmax.nn.transformer import KINDS
from onmt_entmax.report.tables import markdown_table
from onmt_entmax.rules import whole
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator

READABLE = range(7, 15)  # source lengths of example sentences

DEFINITIONS = {
    "attended": "number of keys with a weight above zero, mean over the queries",
    "density": "share of the available keys with a weight above zero, mean over the queries; "
    "softmax is dense, even where a weight rounds to zero",
    "divergence": "Jensen-Shannon divergence between the heads of a layer, to the base of the "
    "number of keys (equation 11), mean over the queries with several keys",
    "positional head": "its largest weight is at the offset for at least 90 % of the tokens "
    "(Voita et al. 2019)",
    "confidence": "weight at the offset: mean over the tokens of a sentence, median over sentences",
    "cluster": "a word of several subwords, with its hyphens; any other token is one of its own",
    "merging": "largest weight that a token gives to the rest of its cluster, in a cluster of one "
    "token to itself; mean over clusters (footnote 3)",
    "inside": "weight inside the current token's own cluster, mean over the tokens",
    "interrogation": "weight that interrogative words give to a final question mark",
    "elsewhere": "weight that they give to the last token of a sentence without one",
}


@dataclass(frozen=True)
class Analysis:
    """What was found in one model."""

    measures: Mapping[str, Any]
    examples: Mapping[str, list[Shown]]


def analyse(
    options: argparse.Namespace, folder: Path, name: str, words: frozenset[str]
) -> Analysis:
    """Measure the heads of one model; `words` are the interrogative ones.

    Raises:
        UserError: a file cannot be read, or the model is no Transformer with such attention.
    """
    loaded = load(folder)
    alphas = head_alphas(loaded.model)
    if not alphas:
        raise UserError(f"{folder}: is no Transformer, and only Transformers have heads")
    if "decoder" not in alphas:
        raise UserError(f"{folder}: has average attention (self_attn_type), which has no heads")
    translator = Translator([loaded], SearchTask(), options.transforms)
    pairs = read(translator, options.source, options.target)[: options.limit]
    if all(len(pair.source) == 1 for pair in pairs):
        raise UserError(f"{options.source}: no sentence has two tokens, so no head has a choice")
    vocabularies = loaded.vocabularies

    def run(chosen: Sequence[Pair]) -> Any:
        each = [(pair.source, pair.target) for pair in chosen]
        return attend(loaded.model, vocabularies, each, options.batch_size)

    sources = [tuple(vocabularies.source.tokens[i] for i in pair.source) for pair in pairs]
    shown = tqdm(run(pairs), name, len(pairs), leave=False, disable=None)
    measures = measure(shown, alphas, words)
    found = {"model": str(folder), "sentences": len(pairs)}
    found |= {kind: each.summary() for kind, each in measures.items()}

    def seen(index: int) -> Attended:
        return next(iter(run([pairs[index]])))

    return Analysis(found, _examples(name, found, measures["encoder"], sources, seen, words))


def _examples(
    name: str,
    found: Mapping[str, Any],
    encoder: HeadMeasures,
    sources: Sequence[tuple[str, ...]],
    seen: Any,
    words: frozenset[str],
) -> dict[str, list[Shown]]:
    """Return the heads and sentences to draw, by picture; chosen by measure."""
    lengths = {i: len(s) for i, s in enumerate(sources) if len(s) in READABLE}
    lengths = lengths or {i: len(s) for i, s in enumerate(sources)}
    measured, alphas = found["encoder"], found["encoder"]["alpha"]

    def shown(head: Head, index: int, said: str) -> Shown:
        weights = seen(index).weights["encoder"][head.layer - 1, head.head - 1]
        title = f"{name}: {head}, alpha {head.alpha:.2f}\n{said}"
        return Shown(title, weights, sources[index], sources[index])

    in_words = {i: _in_several(sources[i]) for i in lengths}
    richest = max(lengths, key=lambda i: (in_words[i], -i))
    merging = ranked("encoder", measured["merging"], alphas)[0]
    before = ranked("encoder", measured["positional"]["-1"]["median_weight"], alphas)[0]
    examples = {
        "merging": [shown(merging, richest, f"score {merging.score:.1%}")],
        "positional": [shown(before, richest, f"confidence {before.score:.1%}")],
    }
    asked = measured["interrogation"]
    if asked["weight_on_question_mark"] is not None:
        head = ranked("encoder", asked["weight_on_question_mark"], alphas)[0]
        chosen = [
            next((i for i in lengths if is_question(sources[i], words) is kind), None)
            for kind in (True, False)
        ]
        examples["interrogation"] = [
            shown(head, index, said)
            for index, said in zip(chosen, ("a question", "no question"), strict=True)
            if index is not None
        ]
    varied = most_varied(encoder, lengths)
    if varied is not None and varied[0].score > 0:
        head, *both = varied
        place = (head.layer - 1, head.head - 1)
        examples["contrast"] = [
            shown(head, index, f"density {encoder.density[index][place]:.0%}") for index in both
        ]
    return examples


def _in_several(tokens: Sequence[str]) -> int:
    """Return the number of tokens in clusters of several."""
    numbers = clusters(tokens)
    return sum(numbers.count(number) > 1 for number in numbers)


def overview(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of alphas, attended keys, densities and divergences."""
    head = ["model"]
    for kind in KINDS:
        head += [f"{kind}: alpha", "attended", "density", "divergence"]
    rows = []
    for name, model in found.items():
        row = [name]
        for kind in KINDS:
            each, alphas = model[kind], np.ravel(model[kind]["alpha"])
            low, high = alphas.min(), alphas.max()
            row += [
                f"{low:.3g}" if low == high else f"{low:.2f} to {high:.2f}",
                f"{np.mean(each['attended']):.2f}",
                f"{np.mean(each['density']):.1%}",
                f"{np.mean(each['divergence']):.3f}",
            ]
        rows.append(row)
    return markdown_table(head, rows)


def specialised(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of positional heads, and one of the heads that merge or question most."""
    positional = [
        [name, f"{offset:+d}" if offset else "0", str(len(heads)), _listed(heads)]
        for name, model in found.items()
        for offset in OFFSETS
        if (heads := positional_heads(model["encoder"], "encoder", offset))
    ]
    merging = []
    for name, model in found.items():
        encoder, alphas = model["encoder"], model["encoder"]["alpha"]
        asked = encoder["interrogation"]
        best = [
            ranked("encoder", scores, alphas)[0] if scores is not None else None
            for scores in (
                encoder["merging"],
                encoder["inside_cluster"],
                asked["weight_on_question_mark"],
            )
        ]
        cells = [
            f"{h.layer}.{h.head} (alpha {h.alpha:.2f}): {h.score:.1%}" if h else "none"
            for h in best
        ]
        elsewhere = "none"
        if best[2] is not None and asked["weight_on_last_token"] is not None:
            elsewhere = f"{asked['weight_on_last_token'][best[2].layer - 1][best[2].head - 1]:.1%}"
        merging.append([name, *cells, elsewhere, str(asked["words_in_questions"])])
    return "\n\n".join(
        [
            "Positional heads of the encoder, with confidence and alpha:",
            markdown_table(
                ["model", "offset", "heads", "layer.head: confidence (alpha)"], positional
            )
            if positional
            else "none",
            "Heads of the encoder with the largest value:",
            markdown_table(
                ["model", "merging", "inside", "interrogation", "elsewhere", "words in questions"],
                merging,
            ),
        ]
    )


def _listed(heads: Sequence[Head]) -> str:
    return ", ".join(f"{h.layer}.{h.head}: {h.score:.1%} ({h.alpha:.2f})" for h in heads)


def by_layer(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of density and divergence by layer."""
    rows = [
        [name, kind, str(layer), f"{density:.1%}", f"{divergence:.3f}"]
        for name, model in found.items()
        for kind in KINDS
        for layer, (density, divergence) in enumerate(
            zip(model[kind]["density_by_layer"], model[kind]["divergence"], strict=True), 1
        )
    ]
    return markdown_table(["model", "attention", "layer", "density", "divergence"], rows)


def trajectories(folder: Path) -> tuple[list[int], dict[str, Any]] | None:
    """Return steps and learned alphas by kind from a run folder; None if it has none."""
    run = folder if (folder / "metrics.jsonl").is_file() else folder.parent
    if not (run / "metrics.jsonl").is_file():
        return None
    rows = [row for row in read_metrics(run) if row["kind"] == "alpha"]
    if not rows:
        return None
    kinds = [kind for kind in KINDS if kind in rows[0]]
    return [row["step"] for row in rows], {k: np.array([row[k] for row in rows]) for k in kinds}


def write_all(out: Path, analyses: Mapping[str, Analysis], folders: Sequence[Path]) -> list[str]:
    """Write numbers, tables and pictures; return their paths."""
    found = {name: analysis.measures for name, analysis in analyses.items()}
    parts = [
        "# Attention heads",
        "Layers and heads are counted from 1.",
        markdown_table(["measure", "definition"], DEFINITIONS.items()),
        overview(found),
        specialised(found),
        by_layer(found),
    ]
    texts = {
        "heads.json": json.dumps(found, indent=1) + "\n",
        "heads.md": "\n\n".join(parts) + "\n",
    }
    for name, text in texts.items():
        write_text(out / name, text)
    drawn = {
        "alphas": pictures.draw_alphas(found),
        "densities": pictures.draw_densities(found),
        "layers": pictures.draw_layers(found),
        "divergence": pictures.draw_divergence(found),
    }
    curves = [curve for curve in map(trajectories, folders) if curve]
    if curves:
        drawn["trajectories"] = pictures.draw_trajectories(*curves[-1])
    for picture in ("positional", "merging", "interrogation", "contrast"):
        shown = [each for a in analyses.values() for each in a.examples.get(picture, ())]
        if shown:
            across = 2 if picture in ("interrogation", "contrast") else 3
            drawn[picture] = pictures.draw_heads(shown, across)
    written = [str(out / name) for name in texts]
    return written + [write_figure(figure, out / name) for name, figure in drawn.items()]


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = comparing_parser(__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--batch_size", type=following(whole(1, 10**7)), default=32, metavar="N")
    add("--language", choices=sorted(INTERROGATIVES), help="of the source: its question words")
    add("--interrogatives", nargs="+", metavar="WORD", help="question words of other languages")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Print and write the analyses; return the exit status."""
    options = parse_arguments(arguments)
    names = model_names(options.models, options.names)
    check_folder(options.out)
    given = options.interrogatives or INTERROGATIVES.get(options.language or "", "").split()
    words = frozenset(word.lower() for word in given)
    prepare(names)  # fail before the work if matplotlib is missing
    both = zip(names, options.models, strict=True)
    analyses = {name: analyse(options, folder, name, words) for name, folder in both}
    found = {name: analysis.measures for name, analysis in analyses.items()}
    print(overview(found), specialised(found), sep="\n\n")
    examples = [e for a in analyses.values() for some in a.examples.values() for e in some]
    prepare(text for example in examples for text in example.lines)
    print(f"\nwritten: {', '.join(write_all(options.out, analyses, options.models))}")
    return 0
