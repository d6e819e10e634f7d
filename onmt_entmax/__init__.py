"""Sparse sequence-to-sequence models for OpenNMT-py, with certified beam search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onmt_entmax.version import __version__

if TYPE_CHECKING:  # type checkers do not follow `__getattr__`
    from onmt_entmax.checkpoint import load
    from onmt_entmax.inflector import Inflector, Question
    from onmt_entmax.nn.attention import EntmaxGlobalAttention
    from onmt_entmax.nn.output import OutputLayer
    from onmt_entmax.search import SearchConfig, SearchTask, beam_search
    from onmt_entmax.sparse import (
        Entmax,
        EntmaxLoss,
        entmax,
        entmax_attention,
        entmax_attention_weights,
        entmax_loss,
        log_entmax,
        tsallis_entropy,
    )
    from onmt_entmax.strings.task import Query
    from onmt_entmax.suggester import suggest
    from onmt_entmax.training import train_model
    from onmt_entmax.transducer import Transducer
    from onmt_entmax.translator import Translator

# The module of each name. It is imported when the name is first used, so that `entmax` does not
# import OpenNMT-py.
_MODULES = {
    "Entmax": "sparse",
    "EntmaxGlobalAttention": "nn.attention",
    "EntmaxLoss": "sparse",
    "Inflector": "inflector",
    "OutputLayer": "nn.output",
    "Query": "strings.task",
    "Question": "inflector",
    "SearchConfig": "search",
    "SearchTask": "search",
    "Transducer": "transducer",
    "Translator": "translator",
    "beam_search": "search",
    "entmax": "sparse",
    "entmax_attention": "sparse",
    "entmax_attention_weights": "sparse",
    "entmax_loss": "sparse",
    "load": "checkpoint",
    "log_entmax": "sparse",
    "suggest": "suggester",
    "train_model": "training",
    "tsallis_entropy": "sparse",
}

# Type checkers read only a literal list.
__all__ = [
    "Entmax",
    "EntmaxGlobalAttention",
    "EntmaxLoss",
    "Inflector",
    "OutputLayer",
    "Query",
    "Question",
    "SearchConfig",
    "SearchTask",
    "Transducer",
    "Translator",
    "__version__",
    "beam_search",
    "entmax",
    "entmax_attention",
    "entmax_attention_weights",
    "entmax_loss",
    "load",
    "log_entmax",
    "suggest",
    "train_model",
    "tsallis_entropy",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
