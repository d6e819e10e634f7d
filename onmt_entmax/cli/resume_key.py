"""The key of a prediction: everything that determines its output.

The key is recorded beside an unfinished output. A later command continues that output only if its
own key is the same.
"""

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.checked_tables import CheckedTable
from onmt_entmax.cli.prediction_counts import PredictionCounts
from onmt_entmax.files import naming
from onmt_entmax.transducer import Transducer
from onmt_entmax.version import __version__

_MODEL_FILES = ("config.yaml", "vocab.json", "model.safetensors")  # they determine the outputs
# Options on which the content of a predicted table depends. `batch_size` and `gpu` are among them,
# since they change the last digits of probabilities.
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


def resume_key(
    table: CheckedTable, transducer: Transducer, options: argparse.Namespace
) -> dict[str, Any]:
    """Return everything that determines a predicted table, and the counts recorded beside it.

    Args:
        table: the table to predict.
        transducer: predicts the targets.
        options: options of `predict`.

    Returns:
        An object for JSON, which `files.continued.Continued` compares with the recorded key.
    """
    return {
        "version": __version__,
        # The names of the counts, since `PredictionCounts.read` reads these names alone.
        "counts": sorted(PredictionCounts().record()),
        "models": [_digest_of_model(folder) for folder in transducer.folders],
        "analogies": [_digest([path]) for path in options.analogies],
        "table": table.digest,
        "layout": [table.layout.columns, table.layout.delimiter, table.layout.heading],
        "language": table.language,
        **{name: getattr(options, name) for name in _CONTENT_OPTIONS},
    }


def _digest_of_model(folder: Path) -> str:
    """Return a digest of the files on which the outputs of a model depend."""
    return _digest([folder / name for name in _MODEL_FILES])


def _digest(paths: Sequence[Path]) -> str:
    """Return a digest of the contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        with naming(path, "read"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
