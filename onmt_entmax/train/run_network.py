"""The network that a run starts with: a new one from its seed, or that of a checkpoint."""

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from onmt_entmax.config import ModelConfig, RunConfig, TrainingSetup
from onmt_entmax.data.frequencies import target_frequencies
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.errors import counted
from onmt_entmax.memory import refuse_too_large
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters, device_of
from onmt_entmax.sparse.backends import cpu
from onmt_entmax.train.resumed import Resumed


def starting_network(
    setup: TrainingSetup,
    data: TrainingData,
    resumed: Resumed | None,
    device: torch.device,
    tell: Callable[[str], None],
) -> SparseNMTModel:
    """Return the network on its device; say what it is. Seeds torch's random generators.

    Args:
        setup: seed, network, word vectors and label smoothing; its optimiser decides how much
            memory training takes.
        data: has the vocabularies.
        resumed: the checkpoint that has the network; None for a new one.
        device: the device to train on.
        tell: receives a description, and warnings.

    Raises:
        TooLargeError: it does not fit in memory.
    """
    run, model = setup.run, setup.model
    torch.manual_seed(run.seed)
    if resumed is not None:
        network = resumed.loaded.model
    else:
        # Weights and gradients; Adam also has two moments of each weight.
        copies = 4 if setup.training.optimizer.optim == "adam" else 2
        refuse_too_large(model, data.vocabularies, copies, device)
        network = build_model(model, data.vocabularies)
        _load_vectors(run, network, data.vocabularies, tell)
    if run.label_smoothing_prior == "unigram":
        network.generator.prior = target_frequencies(data)
    network.to(device)
    _describe(network, model, data.vocabularies, tell)
    return network


def _load_vectors(
    run: RunConfig,
    network: SparseNMTModel,
    vocabularies: Vocabularies,
    tell: Callable[[str], None],
) -> None:
    """Copy pretrained word vectors into the embeddings of each side that has a file of them."""
    kind = run.embeddings_type or "GloVe"
    files = run.src_embeddings, run.tgt_embeddings
    parts = network.encoder, network.decoder
    for path, part, vocabulary in zip(files, parts, vocabularies, strict=True):
        if path is not None:
            table = part.embeddings.word_lut.weight
            number = _copy_vectors(Path(path), kind, table, vocabulary)
            tell(f"{path}: vectors for {number:,} of {counted(len(vocabulary), 'token')}")


@torch.no_grad()
def _copy_vectors(path: Path, kind: str, table: Tensor, vocabulary: Vocabulary) -> int:
    """Copy the vectors of a file into embeddings; tokens that it lacks keep their own.

    Args:
        path: the file.
        kind: its form, see `read_vectors`.
        table: ``(vocabulary, size)``, changed in place.
        vocabulary: the tokens of the embeddings.

    Returns:
        The number of tokens that the file has.
    """
    vectors = read_vectors(path, kind, vocabulary, table.shape[1])
    for index, vector in vectors.items():
        table[index] = vector
    return len(vectors)


def _describe(
    network: SparseNMTModel,
    model: ModelConfig,
    vocabularies: Vocabularies,
    tell: Callable[[str], None],
) -> None:
    """Say what is trained, and on which device; warn if it takes longer than it need.

    Args:
        network: on its device.
        model: the configuration of the network.
        vocabularies: the vocabularies of source and target.
        tell: receives the description and the warning.
    """
    device = device_of(network)
    tell(
        f"{count_parameters(network):,} weights, vocabularies of "
        f"{len(vocabularies.source):,} source and "
        f"{counted(len(vocabularies.target), 'target token')}, {model.attention_text}, "
        f"output alpha {model.generator_alpha:g}, on {device}"
    )
    without_on_purpose = os.environ.get("ONMT_ENTMAX_NATIVE") == "0"
    if device.type == "cpu" and cpu.module is None and not without_on_purpose:
        tell(
            "warning: the C++ kernels of onmt_entmax.sparse were not compiled, so training "
            "takes longer; install the package again where there is a C++ compiler"
        )
