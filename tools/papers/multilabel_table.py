"""The table of the losses of `multilabel.py` on a data set.

`python -m tools.papers.sparsemax multilabel` prints it, and describes its configurations.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from onmt_entmax.errors import counted
from onmt_entmax.files import write_files
from tools.papers.markdown import markdown_table
from tools.papers.multilabel import CHOOSERS
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_results import key_of, result_of
from tools.papers.multilabel_settings import NAMED, Settings, read_data
from tools.papers.published import published, spread


def evaluate(settings: Settings, test: Path | None) -> str:
    """Measure all losses of a configuration, except those that are done; return the table.

    Args:
        settings: the configuration.
        test: data file to evaluate; None: cross-validation on the training file.

    Raises:
        UserError: a data file cannot be used.
    """
    training, tested = read_data(settings, test)
    unlabelled = len(training.labels) - len(training.labelled())
    if unlabelled:
        warnings.warn(
            f"{settings.train}: {counted(unlabelled, 'row')} without a label: not trained on",
            stacklevel=2,
        )
    key = key_of(settings, test)
    rows = []
    for name in settings.losses:
        loss = Loss(str(name), NAMED[name] if isinstance(name, str) else name)
        result = result_of(settings, loss, training, tested, key)
        rows.append(_table_row(settings, loss, result))
    head = ["loss", "micro F1", "macro F1", "paper, test: micro / macro", "mean of labels' F1"]
    where = "test" if test else "nested cross-validation"
    examples = tested or training
    table = (
        f"{settings.name}, {where}, {counted(len(examples.labelled()), 'row')} with labels, "
        f"F1 in %, {counted(settings.seeds, 'seed')}\n\n"
        f"{markdown_table([*head, 'labels a row', 'seconds'], rows)}\n"
    )
    write_files({Path(settings.out) / f"table{'.test' if test else ''}.md": table})
    return table


def _table_row(settings: Settings, loss: Loss, result: Mapping[str, Any]) -> list[str]:
    """Return the row of a loss, with the published figures of the data set."""
    paper = published(settings.name).get((loss.name, ""))
    return [
        loss.name,
        *(spread(result[chooser]) for chooser in CHOOSERS),
        f"{paper[0]:.2f} / {paper[1]:.2f}" if paper else "",
        spread(result["label_mean_f1"]),
        f"{mean(result['labels_per_row']):.2f}",
        f"{result['seconds']:.0f}",
    ]
