"""Model folders and run folders, written atomically and read without running code.

A model folder holds

    config.yaml        format version, package version, the network, every option of the run
    vocab.json         {"source": [...], "target": [...]}; the index of a token is its id. Of models
                       with languages also "seen": {LANGUAGE: tokens of its sources in training},
                       and "seen_targets", the same of its targets
    cells.tsv          of inflection: language, tags, and how many training sources have them
    model.safetensors  the weights
    training/state.pt  optimiser, counters, random states; absent from a released model
    SHA256SUMS         the checksum of each file

A run folder holds a model folder `step_N` for each checkpoint, and `best.json`, which names the
best one. `train/run_folder.py` writes it.
"""

import io
import json
import math
import re
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError
from torch import Tensor

from onmt_entmax import __version__
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.data.vocabulary import Vocabularies, as_content, read_vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import (
    FileError,
    read_bytes,
    text_lines,
    write_folder,
)
from onmt_entmax.files.checksums import LIST_NAME, is_listed, read_checked, write_list
from onmt_entmax.files.parsing import parse_json, parse_yaml
from onmt_entmax.model import SparseNMTModel, Undrawn, build_model
from onmt_entmax.rules import Rule, shown, whole
from onmt_entmax.strings.cells import Cells, parse_cells
from onmt_entmax.strings.task import TRANSLATION, StringTask, is_language, recorded_task

FORMAT_VERSION = "1.1"  # folders with a larger first number are refused
STATE = "training/state.pt"
CELLS = "cells.tsv"
_LARGEST = 2**34  # bytes of weights or a training state
_LARGEST_TEXT = 2**28


class CheckpointError(UserError):
    """A model folder that cannot be read or written; the message names the file."""


class WeightsError(UserError):
    """Weights that are damaged, or not those of a network; the message names the first."""


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory."""

    folder: Path
    model: SparseNMTModel
    config: ModelConfig
    vocabularies: Vocabularies
    options: dict[str, Any]  # options of the run that trained the model
    package_version: str  # of the program that wrote the folder
    task: StringTask = TRANSLATION

    @property
    def right_to_left(self) -> bool:
        """Whether the network writes the last token of an output first."""
        return self.task.right_to_left


# --- writing ---------------------------------------------------------------------------------


def save(
    folder: Path,
    model: SparseNMTModel,
    config: ModelConfig,
    vocabularies: Vocabularies,
    options: Mapping[str, Any],
    training_state: Mapping[str, Any] | None = None,
    others: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model folder.

    Args:
        folder: replaced if it exists.
        model: its weights are saved, shared ones once.
        config: the network, to build it again.
        vocabularies: of source and target.
        options: every option of the run, defaults included, as a record.
        training_state: tensors, numbers, strings, lists and dicts; None for a released model.
        others: further files by name.

    Raises:
        FileError: the folder cannot be written.
    """
    description = {
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "model": asdict(config),
        "options": dict(options),
    }
    files = {
        "config.yaml": yaml.safe_dump(description, sort_keys=False, allow_unicode=True).encode(),
        "vocab.json": json.dumps(as_content(vocabularies), ensure_ascii=False, indent=0).encode(),
        **(others or {}),
    }

    def write(temporary: Path) -> None:
        temporary.mkdir()
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        weights = temporary / "model.safetensors"
        try:
            safetensors.torch.save_file(_weights_once(model), weights)
            if training_state is not None:
                (temporary / STATE).parent.mkdir()
                with open(temporary / STATE, "wb") as file:
                    torch.save(dict(training_state), file)
        except (SafetensorError, RuntimeError) as error:  # of a full disk, for one
            reason = str(error.__context__ or error).splitlines()[0]
            raise FileError(f"{folder}: cannot be written ({reason})") from None
        # safetensors makes a file that only its owner can read.
        shutil.copymode(temporary / "vocab.json", weights)
        write_list(temporary)

    write_folder(folder, write)


def _weights_once(model: SparseNMTModel) -> dict[str, Tensor]:
    """Return the weights of a model by name; a shared one by its first name.

    On a GPU those of an LSTM are views of one block, which safetensors refuses, so they are copied:
    the model keeps its memory, since CUDA graphs hold the addresses.
    """
    # Backwards, so that the first name of a shared weight is the last that is set.
    by_identity = {
        id(weight): (name, weight.detach())
        for name, weight in reversed(model.state_dict(keep_vars=True).items())
    }
    weights = {}
    for name, weight in by_identity.values():
        is_view = weight.untyped_storage().nbytes() > weight.nbytes
        weights[name] = weight.clone() if is_view else weight.contiguous()
    return weights


# --- reading ---------------------------------------------------------------------------------


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise the errors of reading a file as a CheckpointError that names it."""
    try:
        yield
    except FileError as error:
        raise CheckpointError(str(error)) from None
    except (UserError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: {error}") from None


def checkpoint_steps(run: Path) -> list[int]:
    """Return the steps of the checkpoints in a run folder, oldest first."""
    names = [path.name for path in run.iterdir()] if run.is_dir() else []
    return sorted(int(name[5:]) for name in names if re.fullmatch(r"step_\d+", name))


def read_best(run: Path) -> dict[str, Any] | None:
    """Return the fields of `best.json`: step, metric and value; None if there is no such file.

    Raises:
        CheckpointError: it is damaged.
    """
    path = run / "best.json"
    if not path.exists():
        return None
    with _naming(path):
        content = parse_json(read_bytes(path, _LARGEST_TEXT).decode("utf-8"))
    # The value is null if it was not finite.
    rules = {"step": whole(0, 10**12), "metric": Rule(str), "value": Rule(float, off=None)}
    if not isinstance(content, dict) or not all(
        name in content and rule.fits(content[name]) for name, rule in rules.items()
    ):
        raise CheckpointError(f"{path}: damaged; name a checkpoint instead, such as {run}/step_N")
    if content["value"] is None:
        content["value"] = math.nan
    return content


def best_step(run: Path) -> int | None:
    """Return the step in `best.json`; None if the file is missing or damaged."""
    try:
        best = read_best(run)
    except CheckpointError:
        return None
    return None if best is None else int(best["step"])


def find_model(path: Path) -> Path:
    """Return the model folder at `path`: itself, or the best checkpoint of a run, or the newest.

    Of a file that was imported, return the folder that it became. Warns if the best checkpoint is
    gone, as from a copy of a part of the run.

    Raises:
        CheckpointError: there is no model, or the name of the best checkpoint is damaged.
    """
    if (path / "config.yaml").is_file():
        return path
    steps = checkpoint_steps(path)
    if steps:
        best = read_best(path)
        step = steps[-1] if best is None else best["step"]
        if step not in steps:
            warnings.warn(
                f"{path / 'best.json'}: names step_{step}, which is not there; the newest "
                f"checkpoint is taken instead, step_{steps[-1]}",
                stacklevel=2,
            )
            step = steps[-1]
        return path / f"step_{step}"
    imported = _imported(path)
    if imported is not None:
        return imported
    raise CheckpointError(f"{path}: {_why_no_model(path)}")


def _why_no_model(path: Path) -> str:
    """Return why a path is neither a model folder nor a run folder, and what to do."""
    if not path.exists():
        # OpenNMT-py writes `model_step_1000.pt`, and this package `model/step_1000`.
        name = re.fullmatch(r"(.+)_(step_\d+)(\.pt)?", path.name)
        folder = path.with_name(name[1]) / name[2] if name else path
        hint = f"; did you mean {folder}?" if folder.is_dir() else ""
        return f"no such model folder{hint}"
    if path.is_file():
        folder = path.with_suffix("")
        if folder.exists():
            folder = folder.with_name(f"{path.name}.imported")
        command = shlex.join(["onmt-entmax", "import-onmt", str(path), str(folder)])
        return f"a file, and models are folders; convert a checkpoint of OpenNMT-py: {command}"
    inside = {model.parent for model in (*path.glob("*/config.yaml"), *path.glob("*/step_*"))}
    usual = path / "model"  # where `prepare` lets a run write it
    hint = f"; did you mean {usual if usual in inside else min(inside)}?" if inside else ""
    return f"not a model folder (it has neither config.yaml nor step_N){hint}"


def _imported(path: Path) -> Path | None:
    """Return the model folder that `import-onmt` wrote of a file, if it is not older."""
    if not path.is_file():
        return None
    folder = path.with_suffix("")
    config = folder / "config.yaml"
    if config.is_file() and config.stat().st_mtime >= path.stat().st_mtime:
        return folder
    return None


def _read_mapping(folder: Path, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the mapping that a text file of a model folder holds."""
    with _naming(folder / name):
        content = parse(read_checked(folder, name, _LARGEST_TEXT).decode("utf-8"))
        if not isinstance(content, dict):
            raise UserError("it does not hold what a model folder holds there")
    return content


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any], str]:
    """Return the network and the options of a model folder, and the version that wrote it.

    Raises:
        CheckpointError: config.yaml is missing, damaged or of a newer format.
    """
    content = _read_mapping(folder, "config.yaml", parse_yaml)
    path, version = folder / "config.yaml", str(content.get("format_version"))
    if not re.fullmatch(r"\d{1,4}\.\d{1,4}", version):
        raise CheckpointError(f"{path}: no format_version of the form {FORMAT_VERSION}")
    if float(version) >= 2:
        raise CheckpointError(
            f"{path}: format {version} is newer than this program reads (1.x); install a newer "
            "onmt_entmax"
        )
    for key in ("model", "options"):
        if not isinstance(content.get(key), dict):
            raise CheckpointError(
                f"{path}: {key}: must be a mapping, not {shown(content.get(key))}"
            )
    network_options = dict(content["model"])
    if network_options.get("tag_head", ...) is None:  # of models before 1.1
        del network_options["tag_head"]
    with _naming(path):
        network = ModelConfig.read(network_options)
    return network, content["options"], str(content.get("package_version"))[:20]


def load(path: Path | str, device: torch.device | None = None) -> LoadedModel:
    """Load a model folder, or the best checkpoint of a run folder, in evaluation mode.

    A run may delete a checkpoint while it is read; then this reads the one that is best now.

    Raises:
        CheckpointError: a file is missing, damaged or of a newer format.
    """
    folder = find_model(Path(path))
    while True:
        try:
            return _load(folder, device or torch.device("cpu"))
        except CheckpointError:
            before, folder = folder, find_model(Path(path))
            if folder == before:
                raise


def _load(folder: Path, device: torch.device) -> LoadedModel:
    if not is_listed(folder):
        warnings.warn(f"{folder}: has no {LIST_NAME}: its files are not checked", stacklevel=3)
    config, options, version = read_config(folder)
    for name in SUBWORD_FILES:
        value = options.get(name)
        if value:
            options[name] = str(_own_file(folder, name, value))
    content = _read_mapping(folder, "vocab.json", parse_json)
    with _naming(folder / "vocab.json"):
        vocabularies = read_vocabularies(
            *(content.get(name) for name in ("source", "target", "seen", "seen_targets"))
        )
    with _naming(folder / "config.yaml"), Undrawn():
        model = build_model(config, vocabularies)
    with _naming(folder / "model.safetensors"):
        copy_weights(model, _read_weights(folder))
    with _naming(folder / "config.yaml"):
        task = recorded_task(options, any(map(is_language, vocabularies.source.tokens)))
    model.to(device).eval()
    return LoadedModel(folder, model, config, vocabularies, options, version, task)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a model folder by name.

    Raises:
        UserError: the file is missing or damaged.
    """
    content = read_checked(folder, "model.safetensors", _LARGEST)
    try:
        return safetensors.torch.load(content)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WeightsError(f"cut short or damaged ({reason})") from None


def _own_file(folder: Path, option: str, value: object) -> Path:
    """Return the file of a model folder that an option names, checked; decoding reads it again.

    A stranger's folder could name any file of its reader, which `export` would give away.

    Raises:
        CheckpointError: it is not a file of the folder, or was changed.
    """
    # Unlike `Path.is_file`, `isfile` raises no errors.
    if not (isinstance(value, str) and Path(value).name == value and isfile(folder / value)):
        raise CheckpointError(
            f"{folder / 'config.yaml'}: options: {option}: {shown(value)} is not a file of this "
            "folder; a subword model is a file beside config.yaml, and its name stands here"
        )
    with _naming(folder / value):
        read_checked(folder, value, _LARGEST_TEXT)
    return folder / value


def read_cells(folder: Path) -> Cells:
    """Return the cells of the languages of a model folder; none if it has no `cells.tsv`.

    Raises:
        UserError: the file is damaged.
    """
    path = folder / CELLS
    if not path.exists():
        return {}
    lines = text_lines(io.BytesIO(read_checked(folder, CELLS, _LARGEST_TEXT)), str(path))
    return parse_cells(lines, str(path))


def with_subword_files(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return options that name subword files of a model folder, and these files by name.

    Args:
        options: of a training or a model; `save` takes the result as its options and `others`.

    Raises:
        FileError: a file cannot be read.
    """
    renamed, contents = dict(options), {}
    names: dict[str, str] = {}  # by path: both sides may share a file
    for option in SUBWORD_FILES:
        path = options.get(option)
        if not isinstance(path, str) or not path:
            continue
        name = names.setdefault(path, option + Path(path).suffix)
        try:
            contents[name] = read_bytes(Path(path), _LARGEST_TEXT)
        except FileError as error:
            raise FileError(f"{option}: {error}") from None
        renamed[option] = name
    return renamed, contents


def read_training_state(folder: Path, at_most: int = _LARGEST) -> dict[str, Any]:
    """Return the `training_state` that was given to `save`; its file has `at_most` bytes.

    Raises:
        CheckpointError: there is none (a released model), or it is damaged.
    """
    if not (folder / STATE).exists():
        raise CheckpointError(
            f"{folder}: holds no training state, so training cannot continue; "
            "add -reset_optim all to train its weights from step 0"
        )
    with _naming(folder / STATE):
        content = io.BytesIO(read_checked(folder, STATE, at_most))
    try:
        return torch.load(content, map_location="cpu", weights_only=True)
    except Exception:  # a damaged file raises many kinds, none documented
        raise CheckpointError(f"{folder / STATE}: cut short or damaged") from None


@torch.no_grad()
def copy_weights(model: torch.nn.Module, saved: Mapping[str, object]) -> None:
    """Copy weights, of any precision, into a model.

    Args:
        model: has other weights afterwards, even after an error.
        saved: tensors by name; of a weight that is shared, at least one of its names.

    Raises:
        WeightsError: a weight is missing, unknown, not finite, or of another type or shape.
    """
    state = model.state_dict(keep_vars=True)
    for name in saved.keys() - state.keys():
        raise WeightsError(f"{shown(name)}: the model has no such weight")
    filled = {id(state[name]) for name in saved}
    for name, weight in state.items():
        if name not in saved:
            if id(weight) not in filled:
                raise WeightsError(f"{name}: is missing")
            continue
        value = saved[name]
        if not isinstance(value, Tensor) or not _has_floats(value):
            raise WeightsError(f"{name}: not a tensor of floats")
        if value.shape != weight.shape:
            raise WeightsError(f"{name}: {[*value.shape]}, where the model has {[*weight.shape]}")
        weight.copy_(value)
        # A hundred times as fast as `isfinite().all()`.
        if not all(map(math.isfinite, map(float, weight.aminmax()))):
            raise WeightsError(f"{name}: holds values that are not finite")


def _has_floats(tensor: Tensor) -> bool:
    """Tell whether a tensor holds floats: a sparse or a meta tensor does not."""
    return tensor.layout == torch.strided and not tensor.is_meta and tensor.is_floating_point()
