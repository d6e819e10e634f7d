"""The configurations of a training; every option that becomes one of their fields is declared here.

| file | what it has |
|---|---|
| `declaring.py` | `option`, which gives a field its default, its range and its help; `Checked` |
| `topics.py` | headings of options in the help |
| `conditions.py` | conditions on other options, under which an option has an effect |
| `alphas.py` | values of alpha |
| `network.py` | `ModelConfig` |
| `data.py` | corpora, batches, vocabularies |
| `training.py` | optimiser, loss, limits |
| `validation.py` | measures on the development set |
| `run.py` | folder, start and device of a run |
| `decoding.py` | the default of `target_symbols` |
| `setup.py` | `TrainingSetup`: all configurations of a run |

`options/train_table.py` declares the options that are converted first, `options/translate_table.py`
those of `translate`. Fields have the names, types and defaults of OpenNMT-py where it has the
option.
"""

from onmt_entmax.config.alphas import ALPHA, ATTENTION_KINDS, LEARNED, SHARED
from onmt_entmax.config.conditions import AnyOf, Equals, IsOn
from onmt_entmax.config.data import TRANSFORMS, CorpusConfig, DataConfig, VocabularyConfig
from onmt_entmax.config.declaring import (
    COUNT,
    FEW,
    LIMIT,
    SIZE,
    Checked,
    ConfigError,
    Option,
    declared,
    option,
)
from onmt_entmax.config.decoding import TARGET_SYMBOLS, TargetSymbols
from onmt_entmax.config.network import ModelConfig
from onmt_entmax.config.run import RunConfig
from onmt_entmax.config.setup import TrainingSetup
from onmt_entmax.config.training import OptimizerConfig, TrainingConfig
from onmt_entmax.config.validation import DECODED, ValidationConfig

__all__ = [
    "ALPHA",
    "ATTENTION_KINDS",
    "COUNT",
    "DECODED",
    "FEW",
    "LEARNED",
    "LIMIT",
    "SHARED",
    "SIZE",
    "TARGET_SYMBOLS",
    "TRANSFORMS",
    "AnyOf",
    "Checked",
    "ConfigError",
    "CorpusConfig",
    "DataConfig",
    "Equals",
    "IsOn",
    "ModelConfig",
    "OptimizerConfig",
    "Option",
    "RunConfig",
    "TargetSymbols",
    "TrainingConfig",
    "TrainingSetup",
    "ValidationConfig",
    "VocabularyConfig",
    "declared",
    "option",
]
