"""The table of the losses of `multilabel.py` on a data set.

`python -m tools.papers.sparsemax multilabel` prints it, and describes its configurations.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from statistics import mean

from onmt_entmax.errors import counted
from onmt_entmax.files import write_files
from tools.papers.markdown import markdown_table
from tools.papers.multilabel_loss import Loss
from tools.papers.multilabel_results import DataSet, Result, result_of
from tools.papers.multilabel_settings import ALPHA_OF_LOSS, Settings
from tools.papers.published import Alphas, published
from tools.papers.spread import spread
from tools.papers.text_table import Table

HEAD = (
    "loss",
    "micro F1",
    "macro F1",
    "paper, test: micro / macro",
    "mean of labels' F1",
    "labels a row",
    "seconds",
)


def evaluate(settings: Settings, test: Path | None) -> str:
    """Measure all losses of a configuration; write their table to its folder, and return it.

    A loss that is done, see `multilabel_results`, is not measured again.

    Args:
        settings: the configuration.
        test: data file to evaluate; None: nested cross-validation on the training file.

    Raises:
        UserError: a data file cannot be used.
    """
    data = DataSet.read(settings, test)
    _warn_of_unlabelled(data)
    losses = map(_loss_of, settings.losses)
    rows = [_table_row(settings.name, loss, result_of(data, loss)) for loss in losses]
    where = "test" if test else "nested cross-validation"
    table = (
        f"{settings.name}, {where}, {counted(len(data.predicted.labelled()), 'row')} with labels, "
        f"F1 in %, {counted(settings.seeds, 'seed')}\n\n"
        f"{markdown_table(Table(HEAD, rows))}\n"
    )
    write_files({Path(settings.out) / f"table{'.test' if test else ''}.md": table})
    return table


def _warn_of_unlabelled(data: DataSet) -> None:
    """Warn if the training file has rows without labels, on which nothing can be trained."""
    unlabelled = len(data.training.labels) - len(data.training.labelled())
    if unlabelled:
        warnings.warn(
            f"{data.settings.train}: {counted(unlabelled, 'row')} without a label: not trained on",
            stacklevel=3,  # the line that called `evaluate`
        )


def _loss_of(name: str | float) -> Loss:
    """Return the loss of a name, or the entmax loss of an alpha."""
    return Loss(str(name), ALPHA_OF_LOSS[name] if isinstance(name, str) else name)


def _table_row(data_set: str, loss: Loss, result: Result) -> list[str]:
    """Return the cells of a loss below `HEAD`, with the published figures of a data set's name."""
    paper = published(data_set).get(Alphas(output=loss.name, attention=""))
    return [
        loss.name,
        spread(result["micro_f1"]),
        spread(result["macro_f1"]),
        " / ".join(f"{value:.2f}" for value in paper) if paper else "",
        spread(result["label_mean_f1"]),
        f"{mean(result['labels_per_row']):.2f}",
        f"{result['seconds']:.0f}",
    ]
