"""docs/options.md states the defaults that options of training have."""

import re

from onmt_entmax.options.train import training_options
from tests.commands import ROOT

OPTIONS = training_options()


def documented_defaults() -> dict[str, str]:
    """Return the defaults of training that docs/options.md states, as they stand there.

    It has rows such as "| `a`, `b` | 1, 2 | ... |", or with one value of all.
    """
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    ours = text[text.index("## Our options") : text.index("### Options of `translate`")]
    defaults: dict[str, str] = {}
    for keys, values in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \| .* \|$", ours, re.MULTILINE):
        names = re.findall(r"`(\w+)`", keys)
        documented = [value.strip("`") for value in values.strip().split(", ")]
        if len(documented) == 1:
            documented *= len(names)
        defaults.update(zip(names, documented, strict=True))
    # A default may be another option's value, or be described in the text.
    return {name: value for name, value in defaults.items() if value and value not in OPTIONS}


def as_documented(default: object) -> str:
    """Return a default as documents have it."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, int | float) else str(default)


def test_the_documented_defaults_are_those_of_the_options() -> None:
    documented = documented_defaults()
    # Entries of several options, with values that are numbers and words, were found.
    assert {"alpha_init_mean", "alpha_init_std", "valid_bleu_tokenize"} <= documented.keys()
    assert documented == {name: as_documented(OPTIONS[name].default) for name in documented}
