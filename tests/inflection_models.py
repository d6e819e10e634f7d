"""Random models of inflection, with few enough forms to list them all."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files.checksums import LIST_NAME, write_list
from onmt_entmax.model import build_model
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of(("lang=english", "lang=german", "+V", "+PST", *"ab▁"), "ab▁")


def write_model(
    folder: Path,
    seed: int,
    vocabularies: Vocabularies = VOCABULARIES,
    *,
    end: float = 2,
    options: Mapping[str, object] | None = None,
) -> Path:
    """Write a random model.

    Args:
        folder: folder to write.
        seed: seed of the weights. A test that needs certain forms says so; otherwise any seed would
            do.
        vocabularies: its tokens.
        end: added to the score of the end symbol: the larger, the fewer and shorter the forms; with
            -100, no form ends.
        options: recorded in the folder.

    Returns:
        The folder.
    """
    torch.manual_seed(seed)
    config = small(generator_alpha=1.5, param_init=1.0)
    model = build_model(config, vocabularies).eval()
    with torch.no_grad():
        model.generator.bias[vocabularies.target.eos] += end
    save(folder, model, config, vocabularies, options or {})
    return folder


def write_cells(model: Path, cells: str) -> None:
    """Let a model record cells of training.

    Args:
        model: folder of a model that records none.
        cells: content of the file of cells.
    """
    (model / "cells.tsv").write_text(cells, encoding="utf-8")
    (model / LIST_NAME).unlink()
    write_list(model)  # of checksums, with that of the new file


def zipped(folder: Path, archive: Path) -> bytes:
    """Write a model folder as an archive; return its content."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.iterdir()):
            file.write(path, f"{folder.name}/{path.name}")
    return archive.read_bytes()
