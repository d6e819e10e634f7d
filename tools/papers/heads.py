"""Analyse the attention heads of Transformers (Correia, Niculae and Martins 2019, section 5).

    python -m tools.papers.heads run/softmax run/entmax15 run/learned \\
        --names softmax 1.5-entmax learned --language de --out run/heads \\
        --source run/mt/multi30k/val.de --target run/mt/multi30k/val.en

The models read the target tokens (teacher forcing). The command prints tables and writes the
following files to FOLDER, the pictures as PDF and PNG:

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

heads.md defines each measure.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_files
from onmt_entmax.rules import whole
from tools.papers.alpha_trajectory import read_trajectory
from tools.papers.arguments import AddArgument, add_comparison, names_of, text_of
from tools.papers.head_analysis import analyse
from tools.papers.head_maps import HeadMap, draw_heads
from tools.papers.head_pictures import (
    draw_alphas,
    draw_densities,
    draw_divergence,
    draw_layers,
    draw_trajectories,
)
from tools.papers.head_summary import Models, ModelSummary
from tools.papers.head_tables import overview, page, specialised
from tools.papers.pictures import set_style, write
from tools.papers.plotting import Figure

# Question words by language, in lower case.
INTERROGATIVES = {
    "de": "wer wen wem wessen was wann wo woher wohin warum wieso weshalb wie welche welcher "
    "welches welchen welchem",
    "en": "who whom whose what when where why how which",
}
# Pictures with two attention maps of each model, which stand in one row.
TWO_MAPS = ("interrogation", "contrast")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add: AddArgument = parser.add_argument
    add_comparison(add)
    add("--out", type=Path, required=True, metavar="FOLDER", help="for all files")
    add("--batch_size", type=whole(1, 10**7), default=32, metavar="N", help="pairs (default 32)")
    add("--language", choices=sorted(INTERROGATIVES), help="of the source: its question words")
    add("--interrogatives", nargs="+", metavar="WORD", help="question words of other languages")
    return parser.parse_args(arguments)


def write_texts(measures: Models, out: Path) -> list[str]:
    """Write the measures of each model as heads.json and heads.md; return their paths."""
    texts = {"heads.json": json.dumps(measures, indent=1) + "\n", "heads.md": page(measures)}
    write_files({out / name: text for name, text in texts.items()})
    return [str(out / name) for name in texts]


def interrogatives(options: argparse.Namespace) -> frozenset[str]:
    """Return the question words of the options, in lower case; none without such an option."""
    listed = options.interrogatives or INTERROGATIVES.get(options.language or "", "").split()
    return frozenset(word.lower() for word in listed)


def draw_all(
    measures: Models, examples: Mapping[str, Sequence[HeadMap]], folders: Sequence[Path]
) -> dict[str, Figure]:
    """Return each figure by the name of its file.

    Args:
        measures: measures by model, as in heads.json.
        examples: attention maps by picture.
        folders: run folders of the models.
    """
    figures = {
        "alphas": draw_alphas(measures),
        "densities": draw_densities(measures),
        "divergence": draw_divergence(measures),
        "layers": draw_layers(measures),
    }
    learned = [trajectory for trajectory in map(read_trajectory, folders) if trajectory]
    if learned:
        figures["trajectories"] = draw_trajectories(learned[-1])
    for picture, maps in examples.items():
        figures[picture] = draw_heads(maps, most_across=2 if picture in TWO_MAPS else 3)
    return figures


def main(arguments: Sequence[str]) -> int:
    """Print and write the analyses; return the exit status."""
    options = parse_arguments(arguments)
    names = names_of(options.names, options.models)
    measures: dict[str, ModelSummary] = {}
    examples: dict[str, list[HeadMap]] = defaultdict(list)
    for name, folder in zip(names, options.models, strict=True):
        analysis = analyse(
            folder,
            name,
            text_of(options),
            interrogatives=interrogatives(options),
            batch_size=options.batch_size,
        )
        measures[name] = analysis.measures
        for picture, maps in analysis.examples.items():
            examples[picture] += maps
    print(overview(measures), specialised(measures), sep="\n\n")
    written = write_texts(measures, options.out)
    tokens = [token for maps in examples.values() for drawn in maps for token in drawn.tokens]
    set_style([*names, *tokens])  # with fonts that have their characters
    figures = draw_all(measures, examples, options.models)
    pictures = [write(figure, options.out / name) for name, figure in figures.items()]
    print(f"\nwritten: {', '.join([*written, *pictures])}")
    return 0


if __name__ == "__main__":
    run_script(main)
