"""The model card (README.md) of an exported folder; people complete its task and licence."""

import shlex
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, read_best
from onmt_entmax.errors import printable
from onmt_entmax.model import count_parameters
from onmt_entmax.options.kept import TRAINING_OPTIONS
from onmt_entmax.strings.task import RIGHT_TO_LEFT
from onmt_entmax.strings.units import CHARACTERS
from onmt_entmax.version import __version__

_WIDTH = 100  # characters of a line of text


@dataclass(frozen=True)
class ModelCard:
    """The card of an exported folder.

    Attributes:
        name: name of the new folder.
        loaded: the model.
        dtype: precision of the exported weights, such as `float16`.
        options: options of the exported folder.
    """

    name: str
    loaded: LoadedModel
    dtype: str
    options: Mapping[str, Any]

    def text(self) -> str:
        """Return the card as Markdown."""
        return f"""\
# {self.name}

{self._description()}

- Task, languages and training data: *to be completed*
- Licence: *to be completed*

## Use

```
onmt-entmax verify {self._quoted_name}
onmt-entmax {self._command()}
```

## Training

| | |
|---|---|
{self._training_table()}

Trained with onmt_entmax {self.loaded.package_version}, exported with {__version__} and PyTorch \
{torch.__version__}.
"""

    @property
    def _quoted_name(self) -> str:
        """The name of the folder as a shell reads it."""
        return shlex.quote(self.name)

    def _description(self) -> str:
        """Return the network, its size and its vocabularies."""
        config = self.loaded.config
        source, target = self.loaded.vocabularies.source, self.loaded.vocabularies.target
        network = (
            f"A sequence-to-sequence model of onmt_entmax: {config.encoder_type} encoder, "
            f"{config.decoder_type} decoder, {count_parameters(self.loaded.model):,} weights in "
            f"{self.dtype}, {config.attention_text}, output alpha {config.generator_alpha:g}, "
            f"vocabularies of {len(source):,} source and {len(target):,} target tokens."
        )
        text = textwrap.fill(network, _WIDTH, break_long_words=False, break_on_hyphens=False)
        if self.options.get("target_order") == RIGHT_TO_LEFT:
            text += "\nIt writes from right to left; the commands print from left to right."
        return text

    def _command(self) -> str:
        """Return the command that uses a model of this kind."""
        name, task = self._quoted_name, self.loaded.task
        if task.languages and task.has_tags and task.source == task.target == CHARACTERS:
            return f"inflect --model {name} LANGUAGE LEMMA TAGS"
        if self.options.get("task"):
            return f"predict {name} TABLE --output PREDICTED"
        return f"translate -model {name} -src FILE -output FILE"

    def _training_table(self) -> str:
        """Return the rows of a table: the best checkpoint's measure, if known, and the options."""
        options = self.options
        rows = {name: options[name] for name in TRAINING_OPTIONS if options.get(name) is not None}
        folder = self.loaded.folder
        best = read_best(folder.parent)
        if best is not None and folder.name == f"step_{best.step}":
            measure = {"updates": best.step, f"{best.metric} (dev)": f"{best.value:.6g}"}
            rows = measure | rows
        return "\n".join(printable(f"| {name} | {value} |") for name, value in rows.items())
