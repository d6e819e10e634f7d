"""Search with certificates, scoring and ensembles. A search sees a model only as a `Stepper`."""

from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.beam import beam_search, stream_search
from onmt_entmax.search.certificate import Certificate, Hypothesis, SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.constraint_compiler import ConstraintCompiler
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.ensemble import EnsembleStepper
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.forced import TargetScore, TokenScore, score_targets
from onmt_entmax.search.line_constraints import LineConstraints
from onmt_entmax.search.mbr import Decision, decide
from onmt_entmax.search.model_stepper import ModelStepper
from onmt_entmax.search.penalties import Penalties
from onmt_entmax.search.request import Request
from onmt_entmax.search.sampling import Sample, sample
from onmt_entmax.search.sampling_options import Sampling
from onmt_entmax.search.sequence_ensemble import (
    ListedSequences,
    average_sequences,
)
from onmt_entmax.search.stepper import Step, Stepper
from onmt_entmax.search.suggestions import suggest
from onmt_entmax.search.task import SearchTask
from onmt_entmax.search.verify import Verification, verify

__all__ = [
    "Automaton",
    "Budget",
    "Certificate",
    "ConstraintCompiler",
    "Constraints",
    "Decision",
    "EnsembleStepper",
    "Hypothesis",
    "LineConstraints",
    "ListedSequences",
    "ModelStepper",
    "Penalties",
    "Request",
    "Sample",
    "Sampling",
    "SearchConfig",
    "SearchResult",
    "SearchTask",
    "Step",
    "Stepper",
    "TargetScore",
    "TokenScore",
    "Verification",
    "average_sequences",
    "beam_search",
    "decide",
    "exact_search",
    "is_settled",
    "sample",
    "score_targets",
    "stream_search",
    "suggest",
    "verify",
]
