"""Make training pairs from the predictions of several inflection models (knowledge distillation).

    onmt-entmax distill --train run/medium/data/train.src --models A B C \\
        --weights 2 1 2 --out run/medium/data/distilled

Training data shows few forms of each lemma. This command combines the lemmas and tags of the
training data anew, lets the models predict these queries, averages their predictions
(`onmt-entmax combine`), and keeps as training pairs those that are proven to be the most probable
and whose probability is from --prob to --at-most: sequence-level distillation (Kim and Rush 2016)
on new queries. Confident predictions hardly help the student, hence the upper bound. Mix the pairs,
OUT.src and OUT.tgt, into the training data as another corpus.

Models may write in either direction, and so may the student: files of pairs are in natural order.

The folder OUT.work holds queries and predictions. The same command continues there after the last
model that is done; with another --prob or --draw it selects from the same predictions again.
"""

import argparse
import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import find_model
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.combine import SEVERAL, shares
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import (
    count_lines,
    followed,
    json_text,
    read_lines,
    read_object,
    refuse_overwriting,
    write_files,
    write_text,
)
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.writers import one_line
from onmt_entmax.rules import positive, whole
from onmt_entmax.strings.task import INFLECTION, Query, language_of
from onmt_entmax.strings.units import UNKNOWN

_TRIES = 20  # draws for each new query; after so many, the language is taken to have no more


def new_queries(known: Sequence[Query], count: int, generator: random.Random) -> list[Query]:
    """Return new combinations of the known lemmas and tags of a language.

    Tags are sampled as often as the training data has them, and combined with lemmas of the same
    part of speech (the first tag).

    Args:
        known: the training queries of the language.
        count: how many to make; there are fewer if the language has no more.
        generator: the random generator.
    """
    lemmas: dict[tuple[str, ...], dict[str, None]] = {}  # by part of speech, each once
    for query in known:
        lemmas.setdefault(query.tags[:1], {})[query.source] = None
    choices = {part_of_speech: list(words) for part_of_speech, words in lemmas.items()}
    taken = set(known)
    queries: list[Query] = []
    for _ in range(count * _TRIES):
        if len(queries) == count:
            break
        tags = generator.choice(known).tags
        query = Query(generator.choice(choices[tags[:1]]), tags)
        if query not in taken:
            taken.add(query)
            queries.append(query)
    return queries


def pseudo_labels(
    path: Path, least: float, most: float = 1.0, generator: random.Random | None = None
) -> Iterator[tuple[str, str]]:
    """Yield source and prediction of the records whose best prediction is certified.

    Predictions with a token that stands for an unknown character are left out.

    Args:
        path: an exactness report of `translate` or `combine`.
        least: the least probability of the best prediction.
        most: the greatest probability of the best prediction.
        generator: samples among the predictions by their probabilities; None takes the best.

    Raises:
        UserError: the file is no such report.
    """
    for record in read_report(path):
        hypotheses = record["hypotheses"]
        if not hypotheses or record["certificate"] == "none":
            continue
        if not least <= hypotheses[0]["prob"] <= most:
            continue
        text = hypotheses[0]["text"]
        if generator:
            texts = [hypothesis["text"] for hypothesis in hypotheses]
            probs = [hypothesis["prob"] for hypothesis in hypotheses]
            (text,) = generator.choices(texts, probs)
        if UNKNOWN not in text.split():
            yield one_line(record["source"]), one_line(text)


def write_queries(options: argparse.Namespace, out: Path) -> None:
    """Write new queries, language after language.

    Raises:
        UserError: there are none, or a file cannot be read or written.
    """
    queries: dict[str, list[Query]] = {}  # by language
    for number, line in enumerate(read_lines(options.train), 1):
        language = language_of(options.train, number, line)
        query = INFLECTION.decode_source(line.split())
        queries.setdefault(language, []).append(query._replace(language=""))
    lines = []
    for language, known in queries.items():
        # A generator for each language: its queries do not depend on the other languages.
        generator = random.Random(f"{options.seed}/{language}")
        for query in new_queries(known, options.each * len(known), generator):
            source = INFLECTION.encode_source(query._replace(language=language))
            lines.append(" ".join(source) + "\n")
    if not lines:
        raise UserError(f"{options.train}: no lemma can be combined with other tags")
    write_files({out: "".join(lines)})
    print(f"{out}: queries: {len(lines):,}", flush=True)


def keep(report: Path, options: argparse.Namespace) -> None:
    """Write the training pairs in random order, so that training sees all languages early.

    Raises:
        UserError: there are none, or a file cannot be read or written.
    """
    generator = random.Random(options.seed)
    sampling = generator if options.draw else None
    pairs = list(pseudo_labels(report, options.prob, options.at_most, sampling))
    if not pairs:
        raise UserError(
            f"{report}: no certified prediction has a probability of {options.prob} to "
            f"{options.at_most}"
        )
    generator.shuffle(pairs)
    write_files(pair_texts({options.out: pairs}))
    print(f"{options.out}.{{src,tgt}}: {counted(len(pairs), 'pair')}")


def distill(options: argparse.Namespace) -> None:
    """Make queries, predict them with each model, average the predictions, and keep pairs.

    Raises:
        UserError: a folder has no model, `OUT.work` has other predictions, or there are no queries
            or no pairs.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    pairs = [Path(f"{options.out}.{side}") for side in ("src", "tgt")]
    work = options.out.with_name(f"{options.out.name}.work")
    queries, record = work / "queries.src", work / "distill.json"
    reports = [work / f"{number}.jsonl" for number in range(1, len(options.models) + 1)]
    outputs = [report.with_suffix(".pred") for report in reports]
    combined_output, combined_report = work / "combined.pred", work / "combined.jsonl"
    refuse_overwriting(
        [options.train, options.train.with_suffix(".tgt")],
        [*pairs, queries, record, *reports, *outputs, combined_output, combined_report],
    )
    models = list(map(find_model, options.models))
    _begin(work, _settings(models, options), queries, options)
    for model, report, output in zip(models, reports, outputs, strict=True):
        if report.exists():
            _check_report(report, queries)
            print(f"{report}: {model} is done already")
        else:
            run_command(
                "translate", "-model", model, "-src", queries,
                "-beam_size", options.beam, "-n_best", options.beam,
                "-output", output, "-exactness_report", report,
            )  # fmt: skip
    weights = ["--weights", *options.weights] if options.weights else []
    run_command(
        "combine", "--reports", *reports, *weights,
        "--output", combined_output, "--report", combined_report,
    )  # fmt: skip
    keep(combined_report, options)


def _settings(models: Sequence[Path], options: argparse.Namespace) -> dict[str, Any]:
    """Return what the predictions depend on."""

    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    return {
        "train": digest(options.train),
        "models": [[str(followed(model)), digest(model / "model.safetensors")] for model in models],
        "each": options.each,
        "seed": options.seed,
        "beam": options.beam,
    }


def _begin(
    work: Path, settings: Mapping[str, Any], queries: Path, options: argparse.Namespace
) -> None:
    """Write the queries, unless an interrupted run has.

    Raises:
        UserError: the folder has queries or predictions of other settings.
    """
    record = work / "distill.json"
    if not record.exists():
        write_queries(options, queries)
        # Last: without it, the next run writes the queries again.
        write_text(record, json_text(settings))
        return
    recorded = read_object(record)
    if recorded != settings:
        other = sorted(name for name in settings if settings[name] != recorded.get(name))
        raise UserError(
            f"{work}: its predictions are for other values of {', '.join(other)}; "
            "delete it or give another --out"
        )


def _check_report(report: Path, queries: Path) -> None:
    """Check that a report has a line for each query.

    Raises:
        UserError: it is cut or damaged.
    """
    lines, needed = count_lines(report), count_lines(queries)
    if lines != needed:
        raise UserError(
            f"{report}: cut or damaged, {counted(lines, 'line')}, not {needed:,}; delete it, and "
            "run again"
        )


def main(arguments: Sequence[str]) -> int:
    """Write the pairs; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--train", type=Path, required=True, help="source file of `prepare sigmorphon`")
    add("--models", **SEVERAL, required=True, help="run or model folders")
    add("--weights", type=float, nargs="+", help="one for each model (default: equal)")
    add("--out", type=Path, required=True, help="write OUT.src and OUT.tgt")
    count, share = whole(1, 10_000), positive(1)
    add("--each", type=count, default=2, metavar="N", help="queries per training pair (default 2)")
    add("--beam", type=count, default=5, help="beam size, and predictions per model (default 5)")
    add("--prob", type=share, default=0.3, help="least probability of a prediction (default 0.3)")
    add("--at-most", type=share, default=0.95, help="greatest probability (default 0.95)")
    add("--draw", action="store_true", help="sample predictions, do not take the best")
    add("--seed", type=int, default=1, help="random seed (default 1)")
    options = parser.parse_args(arguments)
    for name in ("train", "out"):
        if not vars(options)[name].name:  # such as the current folder
            raise UserError(f"--{name} {vars(options)[name]}: names no file")
    if options.weights:
        shares(options.weights, len(options.models), "model")
    if options.prob > options.at_most:
        raise UserError(f"--prob {options.prob} is above --at-most {options.at_most}")
    distill(options)
    return 0
