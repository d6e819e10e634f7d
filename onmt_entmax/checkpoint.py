"""Model folders and run folders, written atomically and read without running code.

A model folder holds

    config.yaml        format version, package version, the network, every option of the run
    vocab.json         {"source": [...], "target": [...]}; the index of a token is its id. Of models
                       of inflection also "seen": {LANGUAGE: tokens of its sources in training}
    model.safetensors  the weights
    training/state.pt  optimiser, counters, random states; absent from a released model
    SHA256SUMS         the checksum of each file; since format 1.1

A run folder holds a model folder `step_N` for each checkpoint, and `best.json`, which names the
best one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError
from torch import Tensor

from onmt_entmax.checksums import LIST_NAME, CheckedFolder, digests, write_list
from onmt_entmax.data.vocabulary import (
    Vocabularies,
    VocabularyError,
    as_content,
    read_vocabularies,
)
from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError, read_bytes, write_folder, write_text
from onmt_entmax.model import SparseNMTModel, Undrawn, build_model
from onmt_entmax.network import ModelConfig, NetworkError, weights_of
from onmt_entmax.parsing import ParseError, parse_json, parse_yaml
from onmt_entmax.rules import shown
from onmt_entmax.version import __version__
from onmt_entmax.weights import WeightsError, copy_weights, parsed_weights

# Retired keys of the network in older folders, with the value that turned each off.
_RETIRED: Mapping[str, Any] = {"tag_head": None}
FORMAT_VERSION = (1, 1)  # folders with a larger first number are refused
_FIRST_WITH_CHECKSUMS = (1, 1)
# Largest sizes in bytes; each is read within a second or two.
_LARGEST_TEXT = {"config.yaml": 2**20, "vocab.json": 2**26, "best.json": 2**16}
STATE = "training/state.pt"
# Options that name files of a subword model, which decoding reads again. A model folder has a copy.
_SUBWORD_OPTIONS = tuple(
    f"{side}_subword_{kind}" for side in ("src", "tgt") for kind in ("model", "vocab")
)
_LARGEST_SUBWORDS = 2**28
_LARGEST_STATE = 2**34
# The option with which an exported folder says that its outputs begin with their last token.
TARGET_ORDER, RIGHT_TO_LEFT = "target_order", "right_to_left"
_ORDERS = ("left_to_right", RIGHT_TO_LEFT)
_LOOKS = 10  # how often `load` looks for a checkpoint that stays while it is read
_STEP = re.compile(r"step_(\d+)")


class CheckpointError(UserError):
    """A model folder that cannot be read or written; the message names the file."""


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory."""

    folder: Path
    model: SparseNMTModel
    config: ModelConfig
    vocabularies: Vocabularies
    options: dict[str, Any]  # options of the run that trained the model
    package_version: str  # of the program that wrote the folder
    right_to_left: bool = False  # whether outputs begin with their last token


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

    def write(temporary: Path) -> None:
        temporary.mkdir()
        described = {
            "format_version": ".".join(map(str, FORMAT_VERSION)),
            "package_version": __version__,
            "model": asdict(config),
            "options": dict(options),
        }
        text = yaml.safe_dump(described, sort_keys=False, allow_unicode=True)
        (temporary / "config.yaml").write_text(text, encoding="utf-8")
        text = json.dumps(as_content(vocabularies), ensure_ascii=False, indent=0)
        (temporary / "vocab.json").write_text(text, encoding="utf-8")
        for name, content in (others or {}).items():
            (temporary / name).write_bytes(content)
        try:
            weights = temporary / "model.safetensors"
            safetensors.torch.save_model(_Weights(model), str(weights))
            # safetensors makes a file that only its owner can read.
            shutil.copymode(temporary / "vocab.json", weights)
            if training_state is not None:
                (temporary / "training").mkdir()
                with open(temporary / STATE, "wb") as file:
                    torch.save(dict(training_state), file)
        except (SafetensorError, RuntimeError) as error:
            raise _system_error(error) or error from None
        write_list(temporary)

    write_folder(folder, write)


def _system_error(error: BaseException | None) -> OSError | None:
    """Return the error of the system, such as a full disk, that a library met while writing.

    torch raises another error while it handles that of the file; safetensors has only its number.
    """
    while error is not None:
        if isinstance(error, OSError):
            return error
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            return OSError(int(number[1]), os.strerror(int(number[1])))
        error = error.__context__
    return None


class _Weights(torch.nn.Module):
    """A model's weights, each in memory of its own.

    On a GPU the weights of an LSTM are views of one block, which safetensors refuses. The model
    itself keeps its memory, since CUDA graphs hold the addresses.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._given = model.state_dict()

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """Return the weights by name; views of a larger block are copied."""
        return {
            name: weight.clone() if weight.untyped_storage().nbytes() > weight.nbytes else weight
            for name, weight in self._given.items()
        }


def remember_best(run: Path, step: int, metric: str, value: float) -> None:
    """Write `best.json`: checkpoint `step` is the best of the run."""
    write_text(run / "best.json", _best_text({"step": step, "metric": metric, "value": value}))


def _best_text(fields: Mapping[str, Any]) -> str:
    """Return the content of `best.json`, with its checksum."""
    digest = hashlib.sha256(json.dumps(fields).encode()).hexdigest()
    return json.dumps({**fields, "sha256": digest}) + "\n"


# --- reading ---------------------------------------------------------------------------------


def checkpoint_steps(run: Path) -> list[int]:
    """Return the steps of the checkpoints in a run folder, oldest first."""
    names = [path.name for path in run.iterdir()] if run.is_dir() else []
    return sorted(int(match[1]) for match in map(_STEP.fullmatch, names) if match)


def read_best(run: Path, accepted: bool = False) -> dict[str, Any] | None:
    """Return the fields of `best.json`: step, metric and value; None if there is no such file.

    With `accepted`, its checksum is not compared.

    Raises:
        CheckpointError: it is damaged, or its checksum differs. Files of versions that wrote none
            are not checked.
    """
    path = run / "best.json"
    if not path.exists() and not path.is_symlink():
        return None
    try:
        text = read_bytes(path, _LARGEST_TEXT["best.json"]).decode("utf-8")
        fields = parse_json(text)
    except (FileError, ParseError, UnicodeDecodeError):
        text, fields = "", None
    listed = isinstance(fields, dict) and fields.pop("sha256", None) is not None
    whole = isinstance(fields, dict) and fields.keys() == {"step", "metric", "value"}
    whole = whole and type(fields["step"]) is int and fields["step"] >= 0
    if not whole or (listed and not accepted and text != _best_text(fields)):
        raise CheckpointError(
            f"{path}: damaged; name a checkpoint instead, such as {run}/step_N, or accept a change "
            f"made by hand with onmt-entmax verify --accept {run}"
        )
    return dict(fields)


def best_step(run: Path) -> int | None:
    """Return the step in `best.json`; None if the file is missing or damaged."""
    try:
        best = read_best(run)
    except CheckpointError:
        return None
    return None if best is None else int(best["step"])


def find_model(path: Path, newest: bool = False) -> Path:
    """Return the model folder at `path`: itself, or the best (or `newest`) checkpoint of a run.

    Raises:
        CheckpointError: there is no model, or the name of the best checkpoint is damaged.
    """
    if (path / "config.yaml").is_file():
        return path
    steps = checkpoint_steps(path)
    if steps:
        best = None if newest else read_best(path)
        step = best["step"] if best is not None and best["step"] in steps else steps[-1]
        return path / f"step_{step}"
    if not path.exists():
        raise CheckpointError(f"{path}: no such model folder")
    if path.suffix == ".zip" and path.is_file():
        raise CheckpointError(f"{path}: an archive, which only inflect and serve read; unpack it")
    if path.is_file():
        raise CheckpointError(
            f"{path}: a file, and models are folders; `onmt-entmax import-onmt` converts a "
            f"checkpoint of OpenNMT-py"
        )
    inside = {each.parent for each in (*path.glob("*/config.yaml"), *path.glob("*/step_*"))}
    usual = path / "model"  # where `prepare` lets a run write it
    hint = f"; did you mean {usual if usual in inside else min(inside)}?" if inside else ""
    raise CheckpointError(
        f"{path}: not a model folder (it has neither config.yaml nor step_N){hint}"
    )


def _read(files: CheckedFolder, name: str, at_most: int) -> bytes:
    """Return the content of a file of a model folder.

    Raises:
        CheckpointError: it cannot be read, is larger than `at_most` bytes, or its checksum differs.
    """
    try:
        return files.read(name, at_most)
    except FileError as error:
        raise CheckpointError(str(error)) from None


def _parsed(files: CheckedFolder, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the mapping that a text file of a model folder holds."""
    path = files.path / name
    raw = _read(files, name, _LARGEST_TEXT[name])
    try:
        content = parse(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise CheckpointError(f"{path}: damaged: not UTF-8") from None
    except ParseError as error:
        raise CheckpointError(f"{path}: damaged: {error}") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: damaged, it does not hold what a model folder holds there")
    return content


def _opened(folder: Path) -> CheckedFolder:
    """Return the files of a model folder.

    Raises:
        CheckpointError: its list of checksums is damaged.
    """
    try:
        return CheckedFolder(folder)
    except FileError as error:
        raise CheckpointError(str(error)) from None


def _check_format(files: CheckedFolder, version: object) -> None:
    path = files.path / "config.yaml"
    match = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", str(version))
    if match is None:
        model = path.parent / "model"  # as in the folders of `onmt-entmax experiment`
        there = f"; is it {model} that you mean?" if model.is_dir() else ""
        raise CheckpointError(f"{path}: no format_version of the form 1.0{there}")
    if int(match[1]) > FORMAT_VERSION[0]:
        raise CheckpointError(
            f"{path}: format {version} is newer than this program reads "
            f"({FORMAT_VERSION[0]}.x); install a newer onmt_entmax"
        )
    if files.listed:
        return
    if (int(match[1]), int(match[2])) >= _FIRST_WITH_CHECKSUMS:
        raise CheckpointError(
            f"{files.path / LIST_NAME}: is missing; restore it, or accept the files as they "
            f"are with onmt-entmax verify --accept {files.path}"
        )
    warnings.warn(
        f"{files.path}: format {version}, which has no checksums: its files are not checked",
        stacklevel=2,
    )


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Return the network and the options of a model folder.

    Raises:
        CheckpointError: config.yaml is missing, damaged or of a newer format, or the network has a
            retired part.
    """
    return _config(_opened(folder))[:2]


def _config(files: CheckedFolder) -> tuple[ModelConfig, dict[str, Any], str]:
    """Return the network, the options and the version of the program that wrote them."""
    path = files.path / "config.yaml"
    described = _parsed(files, "config.yaml", parse_yaml)
    _check_format(files, described.get("format_version"))
    for key in ("model", "options"):
        if not isinstance(described.get(key), dict):
            raise CheckpointError(
                f"{path}: {key}: must be a mapping, not {shown(described.get(key))}"
            )
    network, options = described["model"], described["options"]
    for key, off in _RETIRED.items():
        if (value := network.pop(key, off)) != off:
            raise CheckpointError(
                f"{path}: {key}: is retired, and this model has it: {shown(value)}"
            )
    try:
        return ModelConfig.read(network), options, str(described.get("package_version"))[:20]
    except NetworkError as error:
        raise CheckpointError(f"{path}: model: {error}") from None


def _vocabularies(files: CheckedFolder) -> Vocabularies:
    """Return the vocabularies of a model folder."""
    path = files.path / "vocab.json"
    content = _parsed(files, "vocab.json", parse_json)
    try:
        return read_vocabularies(content.get("source"), content.get("target"), content.get("seen"))
    except VocabularyError as error:
        raise CheckpointError(f"{path}: damaged: {error}") from None


def load(path: Path | str, device: torch.device | None = None) -> LoadedModel:
    """Load a model folder, or the best checkpoint of a run folder, in evaluation mode.

    A run may delete or replace a checkpoint while it is read; then this looks again.

    Raises:
        CheckpointError: a file is missing, damaged or of a newer format.
    """
    for _ in range(_LOOKS):
        folder = find_model(Path(path))
        before = _identity(folder)
        try:
            return _load(_opened(folder), device)
        except CheckpointError:
            if before is not None and before == _identity(folder):
                raise
    raise CheckpointError(f"{path}: changes while it is read; try again when its run has ended")


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another of the same name; None if there is no folder."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def with_subword_files(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return options that name subword files of a model folder, and these files by name.

    Args:
        options: of a training or a model; `save` takes the result as its options and `others`.

    Raises:
        FileError: a file cannot be read.
    """
    changed, contents = dict(options), {}
    named: dict[str, str] = {}  # by path: both sides may share a file
    for option in _SUBWORD_OPTIONS:
        path = options.get(option)
        if isinstance(path, str) and path:
            changed[option] = name = named.setdefault(path, option + Path(path).suffix)
            if name in contents:
                continue
            try:
                contents[name] = read_bytes(Path(path), _LARGEST_SUBWORDS)
            except FileError as error:
                raise FileError(f"{option}: {error}") from None
    return changed, contents


def accept(folder: Path) -> None:
    """Record the files of a model folder as they are, after a change by hand.

    Raises:
        CheckpointError: the folder cannot be loaded; nothing was recorded.
        FileError: a file cannot be read, or the list cannot be written.
    """
    sums = digests(folder)
    files = CheckedFolder(folder, sums)
    _load(files)
    if STATE in sums:
        _training_state(files, _LARGEST_STATE)
    write_list(folder, sums)


def _load(files: CheckedFolder, device: torch.device | None = None) -> LoadedModel:
    config, options, version = _config(files)
    options |= _subword_files(files, options)
    vocabularies = _vocabularies(files)
    _check_size(files, config, vocabularies)
    try:
        with Undrawn():
            model = build_model(config, vocabularies)
    except NetworkError as error:
        raise CheckpointError(f"{files.path / 'config.yaml'}: model: {error}") from None
    _fill(model, files, config)
    model.to(device or torch.device("cpu")).eval()
    order = options.get(TARGET_ORDER, _ORDERS[0])
    if order not in _ORDERS:
        raise CheckpointError(
            f"{files.path / 'config.yaml'}: {TARGET_ORDER}: must be {' or '.join(_ORDERS)}, "
            f"not {shown(order)}"
        )
    backwards = order == RIGHT_TO_LEFT
    return LoadedModel(files.path, model, config, vocabularies, options, version, backwards)


def _subword_files(files: CheckedFolder, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths of a folder's own subword files by option, checked."""
    found = {}
    for name in _SUBWORD_OPTIONS:
        value = options.get(name)
        if not isinstance(value, str) or not value or value != Path(value).name:
            continue
        if (files.path / value).is_file():
            _read(files, value, _LARGEST_SUBWORDS)
            found[name] = str(files.path / value)
    return found


def _check_size(files: CheckedFolder, config: ModelConfig, vocabularies: Vocabularies) -> None:
    """Refuse a network that is larger than its file of weights, before it takes memory.

    Raises:
        CheckpointError: names both.
    """
    path = files.path / "model.safetensors"
    weights = sum(weights_of(config, *map(len, vocabularies)).values())
    try:
        size = path.stat().st_size
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from None
    if size < 2 * weights:  # in half precision
        raise CheckpointError(
            f"{path}: cut short or damaged: has {size:,} bytes, too few for the {weights:,} "
            f"weights that config.yaml and vocab.json describe"
        )


def _fill(model: SparseNMTModel, files: CheckedFolder, config: ModelConfig) -> None:
    """Copy the saved weights into a model.

    Raises:
        CheckpointError: names the file and the first weight that does not fit.
    """
    path = files.path / "model.safetensors"
    # In double precision, and with a description of each.
    weights = model.state_dict().values()
    at_most = sum(8 * weight.numel() + 2**10 for weight in weights) + 2**20
    content = _read(files, path.name, at_most)
    try:
        saved = parsed_weights(content)
        positions = any(name.startswith("decoder.") and "pe.pe" in name for name in saved)
        if positions and config.position_encoding and config.decoder_type == "rnn":
            raise CheckpointError(
                f"{files.path}: was trained with position_encoding in a recurrent decoder, which "
                f"is no more: such a model was searched as if all steps were the first; train it "
                f"anew"
            )
        copy_weights(model, saved)
    except WeightsError as error:
        raise CheckpointError(f"{path}: {error}") from None


def read_training_state(folder: Path, at_most: int = _LARGEST_STATE) -> dict[str, Any]:
    """Return the `training_state` that was given to `save`; its file has `at_most` bytes.

    Raises:
        CheckpointError: there is none (a released model), or it is damaged.
    """
    if not (folder / STATE).exists():
        raise CheckpointError(f"{folder}: holds no training state, so training cannot continue")
    return _training_state(_opened(folder), at_most)


def _training_state(files: CheckedFolder, at_most: int) -> dict[str, Any]:
    path = files.path / STATE
    content = io.BytesIO(_read(files, STATE, at_most))
    try:
        with zipfile.ZipFile(content) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > at_most:  # compressed, which torch never does
            raise zipfile.BadZipFile
        content.seek(0)
        state: dict[str, Any] = torch.load(content, map_location="cpu", weights_only=True)
    except Exception:  # a damaged file raises many kinds, none documented
        raise CheckpointError(f"{path}: cut short or damaged") from None
    return state
