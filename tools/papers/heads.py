"""Analyse the attention heads of Transformers (Correia, Niculae and Martins 2019, section 5).

    python -m tools.papers.heads run/softmax run/entmax15 run/learned \\
        --names softmax 1.5-entmax learned --language de --out run/heads \\
        --source run/mt/multi30k/val.de --target run/mt/multi30k/val.en

The models are forced along the targets. It prints a table, and writes to FOLDER

    heads.json, heads.md   all measures of all heads; the tables
    alphas                 histograms of the heads' alphas (Figures 3, 11)
    trajectories           learned alphas over training, of the last run folder that has some
                           (Figure 2)
    densities              share of the tokens that get attention (Figures 4, 12)
    layers                 the same by layer, a line for each head (Figures 5, 14)
    divergence             Jensen-Shannon divergence between heads (Figures 6, 13)
    positional             the surest head that attends to the token before (Figure 7)
    merging                the head that merges subwords most (Figure 8)
    interrogation          the head that attends most to question marks (Figure 9)
    contrast               one head on two sentences of equal length (Figure 10)

pictures as PDF and PNG. The definition of each measure stands in heads.md.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from onmt_entmax.nn.transformer import KINDS
from onmt_entmax.rules import whole
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tools.papers.figures import compare_arguments
from tools.papers.head_measures import (
    OFFSETS,
    Head,
    Measures,
    attend,
    clusters,
    head_alphas,
    interrogation,
    most_varied,
    positional_heads,
    ranked,
)
from tools.papers.head_pictures import (
    Shown,
    draw_comparison,
    draw_heads,
    draw_layers,
    draw_trajectories,
    trajectories,
)
from tools.papers.markdown import markdown_table
from tools.papers.pictures import Figure, names_of, prepare, write
from tools.papers.sparsity import Pair, read_pairs

READABLE = range(7, 15)  # source lengths of example sentences
INTERROGATIVES = {
    "de": "wer wen wem wessen was wann wo woher wohin warum wieso weshalb wie welche welcher "
    "welches welchen welchem",
    "en": "who whom whose what when where why how which",
}
DEFINITIONS = {
    "attended": "number of keys with a weight above zero, mean over the queries",
    "density": "share of the available keys with a weight above zero, mean over the queries; "
    "softmax is dense, even where a weight rounds to zero",
    "divergence": "Jensen-Shannon divergence between the heads of a layer, to the base of the "
    "number of keys (equation 11), mean over the queries with several keys",
    "positional head": "its largest weight is at the offset for at least 90 % of the tokens "
    "(Voita et al. 2019)",
    "confidence": "weight at the offset: mean over the tokens of a sentence, median over sentences",
    "cluster": "a word of several subwords, with its hyphens; any other token is its own cluster",
    "merging": "largest weight that a token gives to the rest of its cluster, in a cluster of one "
    "token to itself; mean over clusters (footnote 3)",
    "inside": "weight inside the current token's own cluster, mean over the tokens",
    "interrogation": "weight that interrogative words give to a final question mark",
    "elsewhere": "weight that they give to the last token of a sentence without one",
}

# --- one model -------------------------------------------------------------------------------


def analyse(
    options: argparse.Namespace, folder: Path, name: str, words: frozenset[str]
) -> tuple[dict[str, Any], dict[str, list[Shown]]]:
    """Return the measures of one model, and the examples to draw by picture.

    Raises:
        UserError: a file cannot be read, or the model is no Transformer with such attention.
    """
    loaded = load(folder)
    alphas = head_alphas(loaded.model)
    if "decoder" not in alphas:
        raise UserError(f"{folder}: is no Transformer with heads in all attention")
    translator = Translator([loaded], SearchTask(), options.transforms)
    pairs = read_pairs(translator, options.source, options.target, options.limit)
    if all(len(source) == 1 for source, _ in pairs):
        raise UserError(f"{options.source}: no sentence has two tokens, so no head has a choice")
    measures = {kind: Measures(kind, alphas[kind], words) for kind in KINDS}
    for index, weights in attend(loaded, pairs, options.batch_size):
        source, target = pairs[index]
        target_tokens = loaded.vocabularies.target.decode([loaded.vocabularies.target.bos, *target])
        for kind, of_kind in measures.items():
            of_kind.add(index, weights[kind], source if kind == "encoder" else target_tokens)
    summary: dict[str, Any] = {"model": str(folder), "sentences": len(pairs)}
    summary |= {kind: of_kind.summary() for kind, of_kind in measures.items()}
    examples = _Examples(name, loaded, pairs)
    encoder, drawn = summary["encoder"], dict[str, list[Shown]]()
    drawn |= examples.of_merging_and_position(encoder)
    drawn |= examples.of_interrogation(encoder, words)
    drawn |= examples.of_contrast(measures["encoder"])
    return summary, drawn


class _Examples:
    """Sentences in which heads of a model's encoder show what they do.

    Args:
        name: of the model, for titles.
        loaded: the model.
        pairs: source tokens and target ids.
    """

    def __init__(self, name: str, loaded: LoadedModel, pairs: Sequence[Pair]) -> None:
        self._name, self._loaded, self._pairs = name, loaded, pairs
        sources = {index: source for index, (source, _) in enumerate(pairs)}
        readable = {index: source for index, source in sources.items() if len(source) in READABLE}
        self._sources = readable or sources

    def _shown(self, head: Head, index: int, caption: str) -> Shown:
        """Return a head's attention in one sentence."""
        ((_, weights),) = attend(self._loaded, [self._pairs[index]])
        title = f"{self._name}: encoder {head.layer}.{head.head}, alpha {head.alpha:.2f}\n{caption}"
        return Shown(title, weights["encoder"][head.indices], self._pairs[index][0])

    def of_merging_and_position(self, encoder: Mapping[str, Any]) -> dict[str, list[Shown]]:
        """Return the head that merges most, and the surest of the token before, in one sentence."""
        richest = max(self._sources, key=lambda index: (self._divided_tokens(index), -index))
        merges = ranked(encoder["merging"], encoder["alpha"])[0]
        before = ranked(encoder["positional"]["-1"]["median_weight"], encoder["alpha"])[0]
        return {
            "merging": [self._shown(merges, richest, f"score {merges.score:.1%}")],
            "positional": [self._shown(before, richest, f"confidence {before.score:.1%}")],
        }

    def _divided_tokens(self, index: int) -> int:
        """Return how many tokens of a source are parts of words."""
        numbers = clusters(self._sources[index])
        return sum(numbers.count(number) > 1 for number in numbers)

    def of_interrogation(
        self, encoder: Mapping[str, Any], words: frozenset[str]
    ) -> dict[str, list[Shown]]:
        """Return the head that attends to question marks, in a question and in another sentence."""
        scores = encoder["interrogation"]["weight_on_question_mark"]
        if scores is None:
            return {}
        head = ranked(scores, encoder["alpha"])[0]
        shown = []
        for is_question, caption in ((True, "a question"), (False, "no question")):
            for index, source in self._sources.items():
                positions, ends_with_mark = interrogation(source, words)
                if positions and ends_with_mark is is_question:
                    shown.append(self._shown(head, index, caption))
                    break
        return {"interrogation": shown} if shown else {}

    def of_contrast(self, measures: Measures) -> dict[str, list[Shown]]:
        """Return one head in two sentences of equal length where its density differs most."""
        lengths = {index: len(source) for index, source in self._sources.items()}
        varied = most_varied(measures, lengths)
        if varied is None:
            return {}
        head, denser, sparser = varied
        shown = []
        for index in (denser, sparser):
            density = measures.density[index][head.indices]
            shown.append(self._shown(head, index, f"density {density:.0%}"))
        return {"contrast": shown}


# --- tables ----------------------------------------------------------------------------------


def overview(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of alphas, attended keys, densities and divergences."""
    head, rows = ["model"], []
    for kind in KINDS:
        head += [f"{kind}: alpha", "attended", "density", "divergence"]
    for name, model in models.items():
        row = [name]
        for kind in KINDS:
            measures = model[kind]
            low, high = np.min(measures["alpha"]), np.max(measures["alpha"])
            row.append(f"{low:.3g}" if low == high else f"{low:.2f} to {high:.2f}")
            row.append(f"{np.mean(measures['attended']):.2f}")
            row.append(f"{np.mean(measures['density']):.1%}")
            row.append(f"{np.mean(measures['divergence']):.3f}")
        rows.append(row)
    return markdown_table(head, rows)


def specialised(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of positional heads, and one of the heads that merge or question most."""
    positional, largest = [], []
    for name, model in models.items():
        encoder = model["encoder"]
        for offset in OFFSETS:
            heads = positional_heads(encoder, offset)
            if heads:
                sign = f"{offset:+d}" if offset else "0"
                positional.append([name, sign, ", ".join(map(_described, heads))])
        questions = encoder["interrogation"]
        merges, stays, asks = (
            ranked(scores, encoder["alpha"])[0] if scores else None
            for scores in (
                encoder["merging"],
                encoder["inside_cluster"],
                questions["weight_on_question_mark"],
            )
        )
        elsewhere = "none"
        if asks is not None and questions["weight_on_last_token"] is not None:
            elsewhere = f"{np.array(questions['weight_on_last_token'])[asks.indices]:.1%}"
        cells = [_described(head) if head else "none" for head in (merges, stays, asks)]
        largest.append([name, *cells, elsewhere, str(questions["words_in_questions"])])
    head = ["model", "merging", "inside", "interrogation", "elsewhere", "words in questions"]
    return "\n\n".join(
        [
            "Positional heads of the encoder, with alpha and confidence:",
            markdown_table(["model", "offset", "heads"], positional) if positional else "none",
            "Heads of the encoder with the largest value:",
            markdown_table(head, largest),
        ]
    )


def _described(head: Head) -> str:
    """Return layer and head, with alpha and score."""
    return f"{head.layer}.{head.head} (alpha {head.alpha:.2f}): {head.score:.1%}"


def by_layer(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of density and divergence by layer."""
    rows = [
        [name, kind, str(layer), f"{density:.1%}", f"{divergence:.3f}"]
        for name, model in models.items()
        for kind in KINDS
        for layer, (density, divergence) in enumerate(
            zip(model[kind]["density_by_layer"], model[kind]["divergence"], strict=True), 1
        )
    ]
    return markdown_table(["model", "attention", "layer", "density", "divergence"], rows)


# --- the command -----------------------------------------------------------------------------


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add: Any = parser.add_argument
    compare_arguments(add)
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--batch_size", type=whole(1, 10**7), default=32, metavar="N")
    add("--language", choices=sorted(INTERROGATIVES), help="of the source: its question words")
    add("--interrogatives", nargs="+", metavar="WORD", help="question words of other languages")
    return parser.parse_args(arguments)


def write_texts(models: Mapping[str, Any], out: Path) -> list[str]:
    """Write heads.json and heads.md; return their paths."""
    parts = ["# Attention heads", "Layers and heads are counted from 1."]
    parts.append(markdown_table(["measure", "definition"], DEFINITIONS.items()))
    parts += [overview(models), specialised(models), by_layer(models)]
    texts = {"heads.json": json.dumps(models, indent=1), "heads.md": "\n\n".join(parts)}
    write_files({out / name: f"{text}\n" for name, text in texts.items()})
    return [str(out / name) for name in texts]


def draw_all(
    models: Mapping[str, Any], examples: Mapping[str, Sequence[Shown]], folders: Sequence[Path]
) -> dict[str, Figure]:
    """Return all figures by the names of their files."""
    figures = {
        measure: draw_comparison(models, measure)
        for measure in ("alphas", "densities", "divergence")
    }
    figures["layers"] = draw_layers(models)
    curves = [curve for curve in map(trajectories, folders) if curve]
    if curves:
        figures["trajectories"] = draw_trajectories(*curves[-1])
    for picture, shown in examples.items():
        across = 2 if picture in ("interrogation", "contrast") else 3
        figures[picture] = draw_heads(shown, across)
    return figures


def main(arguments: Sequence[str]) -> int:
    """Print and write the analyses; return the exit status."""
    options = parse_arguments(arguments)
    names, out = names_of(options), options.out
    listed = options.interrogatives or INTERROGATIVES.get(options.language or "", "").split()
    words = frozenset(word.lower() for word in listed)
    models: dict[str, Any] = {}
    examples: dict[str, list[Shown]] = defaultdict(list)
    for name, folder in zip(names, options.models, strict=True):
        models[name], of_model = analyse(options, folder, name, words)
        for picture, shown in of_model.items():
            examples[picture] += shown
    print(overview(models), specialised(models), sep="\n\n")
    texts = write_texts(models, out)
    tokens = [token for shown in examples.values() for each in shown for token in each.tokens]
    prepare([*names, *tokens])
    figures = draw_all(models, examples, options.models)
    pictures = [write(figure, out / name) for name, figure in figures.items()]
    print(f"\nwritten: {', '.join([*texts, *pictures])}")
    return 0


if __name__ == "__main__":
    run_script(main)
