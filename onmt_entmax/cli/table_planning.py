"""Plan a training on tables for `--minutes`, with hallucinated pairs where these help."""

import argparse
from collections.abc import Sequence

from onmt_entmax.cli.hallucinated_pairs import hallucinated_pairs
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.planned_networks import candidates
from onmt_entmax.cli.planning import choice_for, measure, plan_for
from onmt_entmax.cli.plans import HALLUCINATED_PASSES, Plan
from onmt_entmax.cli.table_configuration import HALLUCINATED
from onmt_entmax.cli.table_pairs import PreparedData
from onmt_entmax.files import write_files
from onmt_entmax.strings.task import StringTask

# A plan trains with softmax attention, which the measured configuration does not have.
_PLANNED_ATTENTION = ("-global_attention_function", "softmax", "-attention_warmup_steps", "0")


def plan_for_tables(data: PreparedData, task: StringTask, options: argparse.Namespace) -> Plan:
    """Measure networks on the folder that was written, and return a plan.

    The user may have requested hallucinated pairs, or none, with `--hallucinate`. Without this
    option, this function decides: if there is time for many passes over the rows, it adds
    hallucinated pairs of the languages that profit, and writes them to the folder.

    Args:
        data: the content of the folder.
        task: task of the rows.
        options: options that `common_options` declares.

    Raises:
        UserError: a file cannot be written, or the training cannot be measured.
    """
    pairs, requested = data.pairs["train"], len(data.hallucinated)
    networks = candidates(
        len(pairs) + requested,
        gpu=options.gpu,
        layers=options.layers,
        size=options.size,
        batch=options.batch,
    )
    measured = measure(options.out, networks, gpu=options.gpu, more_options=_PLANNED_ATTENTION)
    minutes = options.minutes / options.models
    choice = choice_for(minutes, measured, hallucinated=requested)
    added: Sequence[tuple[str, str]] = []
    if options.hallucinate is None and choice.passes >= HALLUCINATED_PASSES:
        added = hallucinated_pairs(pairs, task, options.seed)
    if added:
        write_files(pair_texts({options.out / HALLUCINATED: added}))
        # With more data there are fewer passes, so another network may be the best.
        choice = choice_for(minutes, measured, hallucinated=requested, added=len(added))
    return plan_for(
        minutes, measured, choice, gpu=options.gpu, added=len(added), models=options.models
    )
