"""The model card (README.md) of an exported folder; people complete its task and licence."""

import textwrap
from collections.abc import Mapping
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, read_best
from onmt_entmax.errors import printable
from onmt_entmax.model import count_parameters
from onmt_entmax.options.kept import TRAINING_OPTIONS
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.task import RIGHT_TO_LEFT
from onmt_entmax.version import __version__

_WIDTH = 100  # characters of a line of text


def model_card(name: str, loaded: LoadedModel, dtype: str, options: Mapping[str, Any]) -> str:
    """Return the text of a model card.

    Args:
        name: name of the new folder.
        loaded: the model.
        dtype: precision of the exported weights.
        options: options of the exported folder.
    """
    return f"""\
# {name}

{_description(loaded, dtype, options)}

- Task, languages and training data: *to be completed*
- Licence: *to be completed*

## Use

```
onmt-entmax verify {name}
onmt-entmax {_command(name, loaded, options)}
```

## Training

| | |
|---|---|
{_training_table(loaded, options)}

Trained with onmt_entmax {loaded.package_version}, exported with {__version__} and PyTorch \
{torch.__version__}.
"""


def _description(loaded: LoadedModel, dtype: str, options: Mapping[str, Any]) -> str:
    """Return the network, its size and its vocabularies; see `model_card` for the arguments."""
    config = loaded.config
    source, target = loaded.vocabularies.source, loaded.vocabularies.target
    network = (
        f"A sequence-to-sequence model of onmt_entmax: {config.encoder_type} encoder, "
        f"{config.decoder_type} decoder, {count_parameters(loaded.model):,} weights in {dtype}, "
        f"{config.attention_text}, output alpha {config.generator_alpha:g}, vocabularies of "
        f"{len(source):,} source and {len(target):,} target tokens."
    )
    text = textwrap.fill(network, _WIDTH, break_long_words=False, break_on_hyphens=False)
    if options.get("target_order") == RIGHT_TO_LEFT:
        text += "\nIt writes from right to left; the commands print from left to right."
    return text


def _command(name: str, loaded: LoadedModel, options: Mapping[str, Any]) -> str:
    """Return the command that uses a model of this kind; see `model_card` for the arguments."""
    if any(map(is_language, loaded.vocabularies.source.tokens)):
        return f"inflect --model {name} LANGUAGE LEMMA TAGS"
    if options.get("task"):
        return f"predict {name} TABLE --output PREDICTED"
    return f"translate -model {name} -src FILE -output FILE"


def _training_table(loaded: LoadedModel, options: Mapping[str, Any]) -> str:
    """Return the rows of a table of the training: its best measure, if known, and its options."""
    rows = {name: options[name] for name in TRAINING_OPTIONS if options.get(name) is not None}
    best = read_best(loaded.folder.parent)
    if best is not None and loaded.folder.name == f"step_{best.step}":
        measure = {"updates": best.step, f"{best.metric} (dev)": f"{best.value:.6g}"}
        rows = measure | rows
    return "\n".join(printable(f"| {name} | {value} |") for name, value in rows.items())
