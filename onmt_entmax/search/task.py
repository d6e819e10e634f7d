"""The task of a search: what to look for, by which method, and how to choose among the outputs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, get_args

from onmt_entmax.config import TARGET_SYMBOLS, Checked, Equals, TargetSymbols, option
from onmt_entmax.rules import FLAG, one_of, positive
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.constraints import Constraints
from onmt_entmax.search.penalties import Penalties
from onmt_entmax.search.sampling_options import Sampling
from onmt_entmax.search.stepper import SearchError
from onmt_entmax.search.utilities import UTILITIES, Utility

if TYPE_CHECKING:
    from onmt_entmax.data.vocabulary import Vocabulary

Method = Literal["beam", "exact", "enumerate"]


@dataclass(frozen=True)
class SearchTask(Checked):
    """What to search for, with tokens named by their text: the vocabulary is not needed yet.

    Most fields are options of `translate` with the same name. These have another one there, which
    errors name: `method` is `search`, `ban_unknown` is `ban_unk_token`, `regex` is
    `constraint_regex`, and the fields of `sampling` begin with `random_sampling_`.
    """

    config: SearchConfig = field(default_factory=SearchConfig)
    """Its constraints may name tokens by id; the fields below are added to them."""
    method: Method = "beam"
    """`exact`: a beam search (whose `stop` must not be `first`), then an exact search of sentences
    whose `n_best` are not proven; `enumerate`: list the support from the most probable sequence
    down."""
    budget: Budget = field(default_factory=Budget)
    """Limits of `exact` and `enumerate`, for one sentence."""
    mass: float = option(
        1.0,
        positive(1),
        "Probability at which enumerate may stop.",
        "Search and certificates",
        needs=Equals("search", "enumerate"),
    )
    """Total probability at which `enumerate` may stop."""
    verify: bool = option(
        False,
        FLAG,
        "Recompute certified sentences in float64, and count disagreements.",
        "Search and certificates",
    )
    matmul_dtype: str = option(
        "float32",
        one_of("float32", "bfloat16"),
        "Type of products in the LSTMs.",
        "Search and certificates",
    )
    """`bfloat16` is faster on processors that have it, and computes other probabilities."""
    ban_unknown: bool = False
    """Whether to ban `<unk>`."""
    ignore_when_blocking: tuple[str, ...] = ()
    """Tokens whose n-grams may repeat in spite of `block_ngram_repeat`."""
    regex: str | None = None
    """What every output must match, if anything: see `expression_parser.parse_expression`."""
    target_symbols: TargetSymbols | None = option(
        None,
        one_of(*get_args(TargetSymbols), off=None),
        "language: exclude target symbols that neither training targets of the source's language "
        f"nor the source have; any: exclude none. Default: {TARGET_SYMBOLS}.",
        "Outputs",
    )
    """Which symbols outputs may have. None: `TARGET_SYMBOLS`."""
    mbr: Utility | None = option(
        None,
        one_of(*UTILITIES, off=None),
        "Write the output of the highest expected utility, among those found.",
        "Search and certificates",
    )
    """Rank the texts that are found by this expected utility. A beam search then looks for
    `beam_size` texts."""
    sampling: Sampling | None = None
    """Draw `n_best` outputs of each sentence instead of searching."""

    def with_ids(self, target: Vocabulary) -> SearchConfig:
        """Return the configuration of the search, with token ids in place of the task's tokens.

        If the task decides by minimum Bayes risk, a beam search returns all hypotheses that it
        finds, since the decision is better if more are compared.

        Args:
            target: the target vocabulary.

        Raises:
            SearchError: if a token of `ignore_when_blocking` is not in the vocabulary.
        """
        for token in self.ignore_when_blocking:
            if token not in target:
                raise SearchError(
                    f"ignore_when_blocking: {token!r} is not in the target vocabulary"
                )
        config = self.config
        if self.mbr is not None and self.method == "beam":
            config = replace(config, n_best=max(config.n_best, config.beam_size), all_found=True)
        banned = {target.unk} if self.ban_unknown else set()
        ignored = set(target.encode(self.ignore_when_blocking))
        constraints = replace(
            config.constraints,
            banned=config.constraints.banned | banned,
            ignore_when_blocking=config.constraints.ignore_when_blocking | ignored,
        )
        return replace(config, constraints=constraints)

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        config = self.config
        has_penalties = config.penalties.change_scores
        if self.method not in get_args(Method):
            yield "search", f"must be beam, exact or enumerate, not {self.method!r}"
        if self.method == "exact" and config.stop == "first":
            yield "stop", "first goes with search: beam"
        if self.method == "enumerate" and has_penalties:
            yield "search", "enumerate lists by probability, without penalties"
        if self.method == "enumerate" and config.n_best:
            yield "search", "enumerate lists all: n_best must be 0"
        if self.mbr is not None and self.method == "exact":
            yield "mbr", "goes with search: beam or enumerate"
        if self.mbr is not None and has_penalties:
            yield "mbr", "is by probability, without penalties"
        if self.sampling is not None:
            for name in self._options_of_a_search():
                yield name, "goes with a search, not with random sampling"
            if self.config.n_best == 0:
                yield "n_best", "0, for all outputs, goes with a search, not with random sampling"

    def _options_of_a_search(self) -> Iterator[str]:
        """Yield the name of each option that is set, though sampling does not read it.

        `beam_size` may be set, as configurations often do. `mass`, `budget` and
        `ignore_when_blocking` do nothing without another of these options, so they need no check.
        """
        yield from _changed(self.config, unless=_READ_BY_SAMPLING)
        yield from _changed(self.config.constraints)
        yield from _changed(self.config.penalties)
        if self.method != "beam":
            yield "search"
        if self.verify:
            yield "verify"
        if self.ban_unknown:
            yield "ban_unk_token"
        if self.regex is not None:
            yield "constraint_regex"
        if self.mbr is not None:
            yield "mbr"


_READ_BY_SAMPLING = {"beam_size", "n_best", "max_length"}  # fields of SearchConfig


def _changed(
    settings: SearchConfig | Constraints | Penalties, unless: Container[str] = ()
) -> Iterator[str]:
    """Yield the names of fields that differ from their defaults, not those of nested settings."""
    defaults = type(settings)()
    for name in (declaration.name for declaration in fields(settings)):
        value = getattr(settings, name)
        is_nested = isinstance(value, Checked)
        if name not in unless and not is_nested and value != getattr(defaults, name):
            yield name
