"""Finding outputs, and proving what was found. Sees a `Stepper`, never a model class."""

from onmt_entmax.modules.output_decoding import Support
from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import Certificate, Hypothesis, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.decoder import ModelStepper
from onmt_entmax.search.exact import Budget, exact_search, is_settled
from onmt_entmax.search.mixture import Listed, Mixture, mix
from onmt_entmax.search.penalties import Penalties
from onmt_entmax.search.score import TargetScore, TokenScore, score_targets
from onmt_entmax.search.stepper import EnsembleStepper, Step, Stepper
from onmt_entmax.search.stream import stream_search
from onmt_entmax.search.suggest import Suggestion, suggest
from onmt_entmax.search.task import SearchTask
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
