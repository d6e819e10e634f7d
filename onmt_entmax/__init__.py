"""Sparse sequence-to-sequence models for OpenNMT-py, with certified beam search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onmt_entmax.version import __version__

if TYPE_CHECKING:
    from onmt_entmax.checkpoint import load
    from onmt_entmax.inflection import Inflector, Question
    from onmt_entmax.losses import entmax_loss
    from onmt_entmax.mappings import entmax, log_entmax, tsallis_entropy
    from onmt_entmax.modules.attention import EntmaxGlobalAttention
    from onmt_entmax.modules.entmax import Entmax, EntmaxLoss
    from onmt_entmax.modules.output import OutputLayer
    from onmt_entmax.search import SearchConfig, SearchTask, beam_search
    from onmt_entmax.suggestion import suggest
    from onmt_entmax.translation import Translator

# Names are loaded when they are first used: whoever wants only `entmax` does not wait for
# OpenNMT-py to be imported.
_ROOMS = {
    "Entmax": "modules.entmax",
    "EntmaxGlobalAttention": "modules.attention",
    "EntmaxLoss": "modules.entmax",
    "Inflector": "inflection",
    "OutputLayer": "modules.output",
    "Question": "inflection",
    "SearchConfig": "search",
    "SearchTask": "search",
    "Translator": "translation",
    "beam_search": "search",
    "entmax": "mappings",
    "entmax_loss": "losses",
    "load": "checkpoint",
    "log_entmax": "mappings",
    "suggest": "suggestion",
    "tsallis_entropy": "mappings",
}

__all__ = [
    "Entmax",
    "EntmaxGlobalAttention",
    "EntmaxLoss",
    "Inflector",
    "OutputLayer",
    "Question",
    "SearchConfig",
    "SearchTask",
    "Translator",
    "__version__",
    "beam_search",
    "entmax",
    "entmax_loss",
    "load",
    "log_entmax",
    "suggest",
    "tsallis_entropy",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
