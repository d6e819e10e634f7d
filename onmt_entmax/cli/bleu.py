"""Compute BLEU, chrF and TER with sacrebleu, and test differences for significance.

    onmt-entmax bleu run/mt/multi30k/de-en.pred run/mt/multi30k/de-en-softmax.pred \\
        --reference run/mt/multi30k/val.en --tokenize none --output scores.json

Each system and each reference is a file with one sentence per line. The scores and signatures are
those of the `sacrebleu` command. Several systems are compared with the first by sacrebleu's paired
bootstrap test (Koehn 2004). In `35.21 (35.18 +- 0.72, p 0.0120)`, 35.21 is the score, 35.18 its
mean over the bootstrap samples, 0.72 half of the 95 % confidence interval around that mean, and `p`
the probability of so large a difference between systems that do not differ.

--tokenize chooses the tokeniser of BLEU; several tokenisers give several BLEU scores:

    13a             for plain text
    none            for files of tokens: the tokenised BLEU of papers
    onmt            the tokenised BLEU of text, by OpenNMT's tokeniser (mode aggressive, with which
                    `prepare` splits text)
    char, ja-mecab  for Japanese

--detokenize compares the output of a model of Moses' tokens with text: it joins the translations by
Moses' rules, and leaves the references as they are. For a model of lowercased tokens:

    onmt-entmax bleu de-en.pred --reference val.en --detokenize en --lowercase

--nbest N reads files of `translate -n_best N`, which have N lines for each sentence. The scores are
those of the first hypotheses. The columns `best of N` have the scores of the oracle, which takes
for each sentence the hypothesis with the best sentence-level score.

--tune length_reward reads an -exactness_report of `translate -n_best 30` instead of translations.
It reorders the hypotheses with several length rewards, and prints the best options of `translate`.
A search with the reward may find longer outputs than these hypotheses, so measure it, too.

    onmt-entmax bleu val.report.jsonl --reference val.en --tune length_reward

--report REPORT, of the translation of the first system, shows what you gain if you leave less
certain sentences to a person: how many sentences remain, and their score by the first measure, such
as BLEU. It does so for limits on the probability of the output, and for certificates.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.bleu_comparison import compare_systems
from onmt_entmax.cli.bleu_tuning import tune
from onmt_entmax.data.detokenize import LANGUAGES
from onmt_entmax.files import refuse_overwriting
from onmt_entmax.report.sacrebleu_metrics import ONMT
from onmt_entmax.rules import whole

_METRICS = ("bleu", "chrf", "ter")
# Options that --tune excludes, since it measures the BLEU of one system's reordered lists.
_NOT_TUNED = ("nbest", "report", "detokenize", "metrics", "resamples")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Raises:
        UserError: options exclude each other.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("system", nargs="+", type=Path, metavar="SYSTEM", help="file of translations")
    add(
        "--reference",
        nargs="+",
        type=Path,
        required=True,
        metavar="FILE",
        help="files of reference translations",
    )
    add(
        "--metrics",
        nargs="+",
        choices=_METRICS,
        default=list(_METRICS),
        help="measures to compute (default: all)",
    )
    add(
        "--tokenize",
        nargs="+",
        choices=[*BLEU.TOKENIZERS, ONMT],
        default=["13a"],
        metavar="NAME",
        help="tokenisers of BLEU (default 13a)",
    )
    add("--lowercase", action="store_true", help="ignore case in BLEU and chrF (TER always does)")
    add(
        "--detokenize",
        choices=LANGUAGES,
        help="join the systems' tokens to text by Moses' rules for this language",
    )
    add(
        "--nbest",
        type=whole(1, 10_000),
        default=1,
        metavar="N",
        help="lines that each system has for a sentence (default 1)",
    )
    add(
        "--resamples",
        type=whole(0, 100_000),
        default=1000,
        metavar="N",
        help="bootstrap samples; 0: test no differences (default 1000)",
    )
    add("--report", type=Path, metavar="REPORT", help="-exactness_report of the first system")
    add(
        "--tune",
        choices=["length_reward"],
        help="find the best length reward; SYSTEM is then an -exactness_report with n-best lists",
    )
    add("--output", type=Path, metavar="FILE", help="also write the scores here, as JSON")
    options = parser.parse_args(arguments)
    is_excluded = any(vars(options)[name] != parser.get_default(name) for name in _NOT_TUNED)
    if options.tune and (len(options.system) > 1 or len(options.tokenize) > 1 or is_excluded):
        names = ", ".join(f"--{name}" for name in _NOT_TUNED)
        parser.error(f"--tune takes one report as SYSTEM, at most one --tokenize, and no {names}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the scores; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([*options.system, *options.reference, options.report], [options.output])
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    print(tune(options) if options.tune else compare_systems(options))
    return 0
