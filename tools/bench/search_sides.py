"""The translators that `search.py` times on the same sentences: OpenNMT-py's and ours."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.opennmt import ArgumentParser, translate_opts
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.config import Stop
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.translator import Translator
from tools.bench.stock_checkpoints import write_opennmt_checkpoint

Side = Callable[[], list[str]]  # translates all sentences, and returns their best outputs


class Limits(NamedTuple):
    """Limits of a search, the same for both translators.

    Attributes:
        beam: prefixes kept for a sentence.
        min_length: tokens of the shortest output.
        max_length: tokens of the longest output.
    """

    beam: int
    min_length: int
    max_length: int


def opennmt_side(model: Path, lines: list[str], limits: Limits, batch: int) -> Side:
    """Return a function that translates the lines with OpenNMT-py's translator.

    Args:
        model: folder of our softmax model.
        lines: source sentences.
        limits: limits of the search.
        batch: sentences of a batch.
    """
    loaded = load(model)
    translator = _opennmt_translator(loaded, limits)
    _check_weights(translator.model, loaded)

    def translate() -> list[str]:
        _, outputs = translator.translate(lines, batch_size=batch)
        return [n_best[0] for n_best in outputs]

    return translate


def _opennmt_translator(loaded: LoadedModel, limits: Limits) -> Any:
    """Return OpenNMT-py's translator with the weights of our softmax model."""
    from onmt.translate.translator import build_translator

    parser = ArgumentParser()
    translate_opts(parser)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        write_opennmt_checkpoint(loaded, path)
        flags = {
            "-model": path,
            "-src": "-",  # required; the sentences come by `translate`
            "-beam_size": limits.beam,
            "-min_length": limits.min_length,
            "-max_length": limits.max_length,
        }
        arguments = [str(word) for flag in flags.items() for word in flag]
        opennmt_options, _ = parser.parse_known_args(arguments)
        # OpenNMT-py's checkpoints are pickles, which torch refuses by default; this one is ours.
        unpickling = functools.partial(torch.load, weights_only=False)
        with mock.patch.object(torch, "load", unpickling):
            return build_translator(opennmt_options, report_score=False, out_file=io.StringIO())


def _check_weights(model: torch.nn.Module, loaded: LoadedModel) -> None:
    """Fail unless OpenNMT-py's model has our weights.

    It loads them with `strict=False`, so that weights of other names would stay random.
    """
    expected = loaded.model.state_dict()
    for name, value in model.state_dict().items():
        ours = expected[name.replace("generator.0.", "generator.")]
        assert torch.equal(value, ours), f"{name}: OpenNMT-py did not read our weights"


def our_side(model: Path, lines: list[str], limits: Limits, batch: int, stop: Stop) -> Side:
    """Return a function that translates the lines with our translator.

    Args:
        model: folder of the model.
        lines: source sentences.
        limits: limits of the search.
        batch: sentences of a batch.
        stop: when the search of a sentence ends.
    """
    config = SearchConfig(
        limits.beam,
        max_length=limits.max_length,
        stop=stop,
        constraints=Constraints(min_length=limits.min_length),
    )
    translator = Translator([load(model)], SearchTask(config))

    def translate() -> list[str]:
        answers = translator.answers(lines, batch)
        return [answer.hypotheses[0].text if answer.hypotheses else "" for answer in answers]

    return translate
