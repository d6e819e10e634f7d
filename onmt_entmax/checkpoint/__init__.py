"""Model folders and run folders, written atomically and read without running code.

A model folder holds

    config.yaml        format version, package version, the network, every option of the run
    vocab.json         {"source": [...], "target": [...]}; the index of a token is its id. Models
                       with languages also have "seen": {LANGUAGE: tokens of its training sources},
                       and "seen_targets", the same for training targets
    cells.tsv          models of inflection: language, tags, number of training sources with them
    model.safetensors  the weights
    training/state.pt  optimiser, counters, random states; absent from a released model
    src_subword_model.model and others: subword models, which the options in config.yaml name
    SHA256SUMS         the checksum of each file

A run folder holds a model folder `step_N` for each checkpoint, and `best.json`, which names the
best one. `train/run_folder.py` writes it.

| file | what it has |
|---|---|
| `contents.py` | names and size limits of the files, and the error for unreadable folders |
| `writing.py` | `save` |
| `loading.py` | `load`, which gives `onmt_entmax.load` and all commands their models |
| `reading.py` | readers of single files |
| `torch_files.py` | files that `torch.save` wrote, read without running code |
| `weights.py` | weights: collected for saving, read, and copied into a model |
| `subword_files.py` | subword models, which options name by paths or, in a folder, by file names |
| `finding.py` | which model folder a path stands for |
"""

from onmt_entmax.checkpoint.contents import CELLS, FORMAT_VERSION, STATE, CheckpointError
from onmt_entmax.checkpoint.finding import Best, best_step, checkpoint_steps, find_model, read_best
from onmt_entmax.checkpoint.loading import LoadedModel, load
from onmt_entmax.checkpoint.reading import read_cells, read_config, read_training_state
from onmt_entmax.checkpoint.subword_files import with_subword_files
from onmt_entmax.checkpoint.torch_files import read_torch_file
from onmt_entmax.checkpoint.weights import WeightsError, copy_weights
from onmt_entmax.checkpoint.writing import save

__all__ = [
    "CELLS",
    "FORMAT_VERSION",
    "STATE",
    "Best",
    "CheckpointError",
    "LoadedModel",
    "WeightsError",
    "best_step",
    "checkpoint_steps",
    "copy_weights",
    "find_model",
    "load",
    "read_best",
    "read_cells",
    "read_config",
    "read_torch_file",
    "read_training_state",
    "save",
    "with_subword_files",
]
