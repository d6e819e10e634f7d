"""Finding outputs, and proving what was found. Sees a `Stepper`, never a model class."""

from onmt_entmax.search.beam import SearchConfig, beam_search
from onmt_entmax.search.certificate import Certificate, Hypothesis, SearchResult
from onmt_entmax.search.enumerate import enumerate_support
from onmt_entmax.search.stepper import EnsembleStepper, ModelStepper, Stepper

__all__ = [
    "Certificate",
    "EnsembleStepper",
    "Hypothesis",
    "ModelStepper",
    "SearchConfig",
    "SearchResult",
    "Stepper",
    "beam_search",
    "enumerate_support",
]
