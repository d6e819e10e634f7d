"""What a predicted table depends on: a prediction is continued only if all of it is the same."""

import argparse
import hashlib
from pathlib import Path
from typing import Any

from onmt_entmax.cli.checked_tables import CheckedTable
from onmt_entmax.cli.predicted_counts import PredictionCounts
from onmt_entmax.files import naming
from onmt_entmax.transducer import Transducer
from onmt_entmax.version import __version__

_MODEL_FILES = ("config.yaml", "vocab.json", "model.safetensors")
# Options on which the content of a predicted table depends.
_CONTENT_OPTIONS = (
    "n_best",
    "all",
    "least",
    "details",
    "beam_size",
    "batch_size",
    "matmul_dtype",
    "gpu",
    "target_symbols",
)


def work_of(
    table: CheckedTable, transducer: Transducer, options: argparse.Namespace
) -> dict[str, Any]:
    """Return what the content of a predicted table, and the record of its counts, depend on.

    Args:
        table: to predict.
        transducer: predicts it.
        options: those of `predict`.

    Returns:
        As JSON has it; `files.continued.Continued` compares it with the one that it recorded.
    """
    return {
        "version": __version__,
        "counts": sorted(PredictionCounts().record()),
        "models": [_digest_of_model(folder) for folder in transducer.folders],
        "table": table.digest,
        "layout": [table.layout.columns, table.layout.delimiter, table.layout.heading],
        "language": table.language,
        **{name: getattr(options, name) for name in _CONTENT_OPTIONS},
    }


def _digest_of_model(folder: Path) -> str:
    """Return a digest of the files on which the outputs of a model depend."""
    digest = hashlib.sha256()
    for name in _MODEL_FILES:
        with naming(folder / name, "read"):
            digest.update((folder / name).read_bytes())
    return digest.hexdigest()
