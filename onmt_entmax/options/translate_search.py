"""The search, or the random sampling, that the options of `translate` describe."""

from onmt_entmax.config import ConfigError, declared
from onmt_entmax.options.given import Options
from onmt_entmax.options.translate_replacements import draws_samples
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from onmt_entmax.search.expression import ExpressionError
from onmt_entmax.search.expression_parser import parse_expression


def search_task(options: Options) -> SearchTask:
    """Return the search that the options describe.

    Raises:
        OptionError: if options exclude each other.
    """
    sampling = _sampling(options) if draws_samples(options) else None
    longest = options["max_length"]
    if options["min_length"] > longest:
        raise options.error("min_length", f"is above max_length, {longest}")
    search = options["search"]
    _check_expression(options)
    try:
        config = options.make(
            SearchConfig,
            n_best=0 if search == "enumerate" else options["n_best"],  # 0 lists all outputs
            constraints=options.make(Constraints),
            penalties=options.make(Penalties),
        )
        return options.make(
            SearchTask,
            config=config,
            method=search,
            budget=Budget(expansions=options["budget"]),
            ban_unknown=options["ban_unk_token"],
            ignore_when_blocking=tuple(options["ignore_when_blocking"]),
            regex=options["constraint_regex"],
            sampling=sampling,
        )
    except ConfigError as error:
        raise options.error(error.key, error.reason) from None


def _sampling(options: Options) -> Sampling:
    """Return how outputs are drawn.

    Raises:
        OptionError: if an option is set that only a search reads.
    """
    for name in ("replace_unk", "report_align", "constraints", "abstain"):
        if options[name]:
            raise options.error(name, "goes with a search, not with random sampling")
    values = {name: options[f"random_sampling_{name}"] for name in declared(Sampling)}
    return Sampling(**values, seed=max(options["seed"], 0))


def _check_expression(options: Options) -> None:
    """Check the regular expression before models are loaded; a search parses it again.

    Raises:
        OptionError: if it cannot be parsed.
    """
    if options["constraint_regex"] is None:
        return
    try:
        parse_expression(options["constraint_regex"])
    except ExpressionError as error:
        raise options.error("constraint_regex", str(error)) from None
