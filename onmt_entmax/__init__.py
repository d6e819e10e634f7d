"""Sparse sequence-to-sequence models for OpenNMT-py, with certified beam search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onmt_entmax.version import __version__

if TYPE_CHECKING:
    from onmt_entmax.checkpoint import load
    from onmt_entmax.inflection import Inflector
    from onmt_entmax.losses import EntmaxLoss, entmax_loss
    from onmt_entmax.mappings import entmax
    from onmt_entmax.modules.attention import EntmaxGlobalAttention
    from onmt_entmax.modules.entmax import Entmax
    from onmt_entmax.modules.output import OutputLayer
    from onmt_entmax.search import SearchConfig, beam_search
    from onmt_entmax.suggestion import suggest
    from onmt_entmax.translation import Translator

# Names are loaded when they are first used: whoever wants only `entmax` does not wait for
# OpenNMT-py to be imported.
_ROOMS = {
    "Entmax": "modules.entmax",
    "EntmaxGlobalAttention": "modules.attention",
    "EntmaxLoss": "losses",
    "Inflector": "inflection",
    "OutputLayer": "modules.output",
    "SearchConfig": "search",
    "Translator": "translation",
    "beam_search": "search",
    "entmax": "mappings",
    "entmax_loss": "losses",
    "load": "checkpoint",
    "suggest": "suggestion",
}

__all__ = [
    "Entmax",
    "EntmaxGlobalAttention",
    "EntmaxLoss",
    "Inflector",
    "OutputLayer",
    "SearchConfig",
    "Translator",
    "__version__",
    "beam_search",
    "entmax",
    "entmax_loss",
    "load",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
