"""Write a clean model folder to give to others.

    onmt-entmax export run/mine/model released/mine --dtype float16

MODEL is a model folder, or a run folder, whose best checkpoint is taken. The new folder holds the
weights, the vocabularies, the network, the options that decoding reads, the main options of the
training, subword models, checksums, and a model card (README.md) that you complete. It holds no
training state, and no path of this machine.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    LoadedModel,
    load,
    read_cells,
    save,
    with_subword_files,
)
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.model_card import ModelCard
from onmt_entmax.data.subwords import SUBWORD_FILES, SUBWORD_TRANSFORMS
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.errors import UserError
from onmt_entmax.files import followed
from onmt_entmax.model import count_parameters
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.kept import TRAINING_OPTIONS
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.strings.task_record import RECORDED


def export(model: Path, target: Path, dtype: str) -> LoadedModel:
    """Write the clean folder; return the model, whose weights have the new precision.

    Args:
        model: run or model folder.
        target: folder to write.
        dtype: precision of its weights, such as `float16`.

    Raises:
        UserError: a folder cannot be read or written, or a weight does not fit the precision.
    """
    if target.exists() or target.is_symlink():
        raise UserError(f"{target}: exists already; name a new folder")
    loaded = load(model)
    if followed(loaded.folder) in followed(target).parents:
        raise UserError(f"{target}: is in the folder of the model, {loaded.folder}; name another")
    options, contents = _kept_options(loaded)
    loaded.model.to(getattr(torch, dtype))
    for name, weight in loaded.model.state_dict().items():
        if not bool(weight.isfinite().all()):
            raise UserError(f"{loaded.folder}: {name} is too large for {dtype}; export as bfloat16")
    cells = read_cells(loaded.folder)
    if cells:
        contents[CELLS] = cells_text(cells).encode()
    card = ModelCard(target.name, loaded, dtype, options)
    contents["README.md"] = card.text().encode()
    save(target, loaded.model, loaded.config, loaded.vocabularies, options, others=contents)
    return loaded


def _kept_options(loaded: LoadedModel) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the options of the new folder, and the contents of the files that they name.

    Raises:
        UserError: an option names a file other than a subword model.
    """
    transforms = transforms_of(loaded.options)
    kept = {*transform_options(), *TRAINING_OPTIONS, *RECORDED}
    if not SUBWORD_TRANSFORMS.intersection(transforms):  # no transform reads subword models
        kept -= {*SUBWORD_FILES}
    options, contents = with_subword_files(
        {name: value for name, value in loaded.options.items() if name in kept}
    )
    build_transforms([], Namespace(**options), None)  # made only to refuse files that options name
    options["transforms"] = transforms
    return options, contents


def main(arguments: Sequence[str]) -> int:
    """Export the model; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("folder", type=Path, metavar="OUT", help="folder to write; must be new")
    add(
        "--dtype",
        choices=["float32", "float16", "bfloat16"],
        default="float32",
        help="precision of the weights (default float32)",
    )
    options = parser.parse_args(arguments)
    loaded = export(options.model, options.folder, options.dtype)
    weights = count_parameters(loaded.model)
    print(f"{options.folder}: {weights:,} weights of {loaded.folder} in {options.dtype}")
    readme = options.folder / "README.md"
    print(f"complete {readme}, then renew its line in SHA256SUMS, as sha256sum prints it")
    return 0
