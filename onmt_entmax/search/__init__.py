"""Finding outputs, and proving what was found. Sees a `Stepper`, never a model class."""

from onmt_entmax.nn.output import Support
from onmt_entmax.search.beam import beam_search, stream_search
from onmt_entmax.search.certificate import Certificate, Hypothesis, SearchResult
from onmt_entmax.search.config import Budget, Penalties, SearchConfig, SearchTask
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.ensemble import EnsembleStepper, Listed, Mixture, mix
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.forced import Suggestion, TargetScore, TokenScore, score_targets, suggest
from onmt_entmax.search.model_stepper import ModelStepper
from onmt_entmax.search.stepper import Step, Stepper
from onmt_entmax.search.verify import Verification, verify

__all__ = [
    "Budget",
    "Certificate",
    "Constraints",
    "EnsembleStepper",
    "Hypothesis",
    "Listed",
    "Mixture",
    "ModelStepper",
    "Penalties",
    "SearchConfig",
    "SearchResult",
    "SearchTask",
    "Step",
    "Stepper",
    "Suggestion",
    "Support",
    "TargetScore",
    "TokenScore",
    "Verification",
    "beam_search",
    "exact_search",
    "is_settled",
    "mix",
    "score_targets",
    "stream_search",
    "suggest",
    "verify",
]
