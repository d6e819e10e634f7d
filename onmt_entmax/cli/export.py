"""Write a clean model folder to give to others.

    onmt-entmax export run/mine/model released/mine --dtype float16

MODEL is a model folder, or a run folder, whose best checkpoint is taken. The new folder holds the
weights, the vocabularies, the network, the options that decoding reads and the main ones of the
training, subword models, a model card (README.md) to complete, and checksums. It holds no training
state, and no path of this machine.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    LoadedModel,
    load,
    read_best,
    read_cells,
    save,
    with_subword_files,
)
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.data.subwords import SUBWORD_FILES, SUBWORDS
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import followed
from onmt_entmax.model import count_parameters
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.recorded import transforms_of
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.strings.task import RIGHT_TO_LEFT, is_language
from onmt_entmax.strings.task_record import RECORDED
from onmt_entmax.version import __version__

# Options of the training that are kept; none of them is a path.
TRAINING = (
    "optim",
    "learning_rate",
    "decay_method",
    "warmup_steps",
    "max_grad_norm",
    "adam_beta2",
    "batch_size",
    "batch_type",
    "accum_count",
    "train_steps",
    "train_epochs",
    "max_seconds",
    "dropout",
    "attention_dropout",
    "label_smoothing",
    "attention_warmup_steps",
    "average_decay",
    "calibrate",
    "selection",
    "seed",
)


def card(name: str, loaded: LoadedModel, dtype: str, options: Mapping[str, Any]) -> str:
    """Return the text of a model card.

    Args:
        name: of the new folder.
        loaded: the model.
        dtype: precision of the exported weights.
        options: of the exported folder.
    """
    config = loaded.config
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    use = f"translate -model {name} -src FILE -output FILE"
    if any(map(is_language, source.tokens)):
        use = f"inflect --model {name} LANGUAGE LEMMA TAGS"
    elif options.get("task"):
        use = f"predict {name} TABLE --output PREDICTED"
    order = ""
    if options.get("target_order") == RIGHT_TO_LEFT:
        order = "\nIt writes from right to left; the commands print from left to right."
    return f"""\
# {name}

A sequence-to-sequence model of onmt_entmax: {config.encoder_type} encoder, {config.decoder_type} \
decoder, {count_parameters(loaded.model):,}
weights in {dtype}, {config.attention_text}, output alpha {config.generator_alpha:g}, \
vocabularies of
{len(source):,} source and {len(target):,} target tokens.{order}

- Task, languages and training data: *to be completed*
- Licence: *to be completed*

## Use

```
onmt-entmax verify {name}
onmt-entmax {use}
```

## Training

| | |
|---|---|
{_training_table(loaded, options)}

Trained with onmt_entmax {loaded.package_version}, exported with {__version__} and PyTorch \
{torch.__version__}.
"""


def _training_table(loaded: LoadedModel, options: Mapping[str, Any]) -> str:
    """Return the rows of a table of the training: its best measure, if known, and its options."""
    rows = {name: options[name] for name in TRAINING if options.get(name) is not None}
    best = read_best(loaded.folder.parent)
    if best is not None and loaded.folder.name == f"step_{best.step}":
        measure = {"updates": best.step, f"{best.metric} (dev)": f"{best.value:.6g}"}
        rows = measure | rows
    return "\n".join(printable(f"| {name} | {value} |") for name, value in rows.items())


def export(model: Path, target: Path, dtype: str) -> LoadedModel:
    """Write the clean folder; return what was exported.

    Args:
        model: model or run folder.
        target: folder to write.
        dtype: precision of its weights.

    Raises:
        UserError: a folder cannot be read or written, or a weight does not fit the precision.
    """
    if target.exists() or target.is_symlink():
        raise UserError(f"{target}: exists already; name a new folder")
    loaded = load(model)
    if followed(loaded.folder) in followed(target).parents:
        raise UserError(f"{target}: is in the folder of the model, {loaded.folder}; name another")
    transforms = transforms_of(loaded.options)
    kept = {*transform_options(), *TRAINING, *RECORDED}
    if not SUBWORDS.intersection(transforms):  # nothing reads them
        kept -= {*SUBWORD_FILES}
    options, contents = with_subword_files(
        {name: value for name, value in loaded.options.items() if name in kept}
    )
    build_transforms([], Namespace(**options), None)  # refuses files that the options name
    options["transforms"] = transforms
    loaded.model.to(getattr(torch, dtype))
    for name, weight in loaded.model.state_dict().items():
        if not bool(weight.isfinite().all()):
            raise UserError(f"{loaded.folder}: {name} is too large for {dtype}; export as bfloat16")
    cells = read_cells(loaded.folder)
    if cells:
        contents[CELLS] = cells_text(cells).encode()
    contents["README.md"] = card(target.name, loaded, dtype, options).encode()
    save(target, loaded.model, loaded.config, loaded.vocabularies, options, others=contents)
    return loaded


def main(arguments: Sequence[str]) -> int:
    """Export the model; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="model folder, or run folder")
    add("folder", type=Path, metavar="OUT", help="folder to write; must be new")
    add(
        "--dtype",
        choices=["float32", "float16", "bfloat16"],
        default="float32",
        help="precision of the weights",
    )
    options = parser.parse_args(arguments)
    loaded = export(options.model, options.folder, options.dtype)
    weights = count_parameters(loaded.model)
    print(f"{options.folder}: {weights:,} weights of {loaded.folder} in {options.dtype}")
    readme = options.folder / "README.md"
    print(f"complete {readme}, then renew its line in SHA256SUMS, as sha256sum prints it")
    return 0
