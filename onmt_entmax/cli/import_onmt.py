"""Convert a checkpoint of OpenNMT-py 2.3.0 into a model folder, to translate with certificates.

    onmt-entmax import-onmt model_step_100000.pt run/imported
    onmt-entmax translate -model run/imported -src test.src -output test.out -beam_size 5

OpenNMT-py's checkpoints are pickles, and unpickling can run any program. This command asks before
it opens one (unless --yes is given), and runs nothing in it: torch's `weights_only` reader accepts
only tensors and plain containers, and the classes of OpenNMT-py and torchtext that such checkpoints
name are replaced by empty ones, which keep their fields. A file that names anything else is
refused.

The folder keeps the options of the transforms and the main options of the training, but no path:
name the subword models when you translate (-transforms, -src_subword_model, -tgt_subword_model).

Recurrent and Transformer models with softmax or sparsemax are converted; others (copy or coverage
attention, source features, language models, ...) are refused by name. Optimiser states are dropped,
so training cannot continue from an imported model.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import WeightsError, copy_weights, save
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.foreign_checkpoint import (
    ImportingError,
    read_checkpoint,
    vocabularies_of,
)
from onmt_entmax.cli.foreign_options import model_config, options_of, split_off_paths
from onmt_entmax.cli.messages import warn
from onmt_entmax.config import ConfigError, ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files import no_such_file
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.rules import shown


def main(arguments: Sequence[str]) -> int:
    """Convert the checkpoint; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT.pt", help="checkpoint of OpenNMT-py 2.3.0"
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="model folder to write; must be new"
    )
    parser.add_argument("--yes", action="store_true", help="open the pickle without asking")
    options = parser.parse_args(arguments)
    if options.folder.exists() or options.folder.is_symlink():
        raise ImportingError(f"{options.folder}: exists already; name a new folder")
    if not options.checkpoint.is_file():
        raise ImportingError(no_such_file(options.checkpoint))
    if not options.yes and not _may_open(options.checkpoint):
        print("not opened", file=sys.stderr)
        return 1
    _convert(options.checkpoint, options.folder)
    return 0


def _may_open(path: Path) -> bool:
    """Ask the user whether to open a pickle.

    Raises:
        ImportingError: the standard input is no terminal, so nobody can answer.
    """
    print(
        f"{path} is a pickle. Files of that kind can run any program when they are opened; this "
        "tool reads it with a reader that refuses to, yet open only files from people you trust.",
        file=sys.stderr,
    )
    if not sys.stdin.isatty():
        raise ImportingError("nobody to ask: give --yes to open it")
    print("Open it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _convert(checkpoint: Path, folder: Path) -> None:
    """Write the model folder of a checkpoint; print its sizes, and warn of files it does not keep.

    Raises:
        ImportingError: the checkpoint cannot be read, or its model is not supported.
    """
    content = read_checkpoint(checkpoint)
    recorded = options_of(content)
    config, vocabularies = model_config(recorded), vocabularies_of(content)
    model = model_of(content, config, vocabularies)
    kept, left_out = split_off_paths(recorded)
    save(folder, model, config, vocabularies, kept)
    kind = "Transformer" if config.decoder_type == "transformer" else config.rnn_type
    tokens = f"{len(vocabularies.source)} + {len(vocabularies.target)} tokens"
    print(f"{folder}: {kind}, {count_parameters(model):,} weights, {tokens}")
    for name, value in left_out.items():
        warn(f"{name}: {shown(value)} is not kept in the folder; name the file when translating")


def model_of(
    content: Mapping[str, Any], config: ModelConfig, vocabularies: Vocabularies
) -> SparseNMTModel:
    """Return the model with the weights of the checkpoint, in float32.

    Raises:
        ImportingError: a weight is missing, unknown, or of another shape.
    """
    weights = dict(content["model"])
    for name, weight in content["generator"].items():
        # OpenNMT-py's generator is Sequential(Linear, Cast, LogSoftmax).
        weights[f"generator.{str(name).removeprefix('0.')}"] = weight
    try:
        model = build_model(config, vocabularies)
        copy_weights(model, weights)
    except (ConfigError, WeightsError) as error:
        raise ImportingError(f"the weights do not fit the options: {error}") from None
    return model.eval()
