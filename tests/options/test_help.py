"""The help of `train.py` and `translate.py`."""

from collections.abc import Collection

import pytest

from onmt_entmax.opennmt import ArgumentParser
from onmt_entmax.options.help import TRAINING, TRANSLATION
from onmt_entmax.options.reader import canonical, register
from onmt_entmax.options.support import (
    REFUSED_IN_TRAINING,
    REFUSED_IN_TRANSLATION,
    RETIRED_IN_TRAINING,
    WITHOUT_EFFECT,
)
from onmt_entmax.options.train import training_parser
from onmt_entmax.options.translate import translation_parser

CASES = [
    (
        training_parser(),
        TRAINING,
        {*REFUSED_IN_TRAINING, *RETIRED_IN_TRAINING, *WITHOUT_EFFECT} - {"seed"},
    ),
    (translation_parser(), TRANSLATION, {*REFUSED_IN_TRANSLATION, *WITHOUT_EFFECT}),
]


@pytest.mark.parametrize(("parser", "texts", "idle"), CASES, ids=["train", "translate"])
def test_it_lists_what_does_something_and_tells_what_is_so(
    parser: ArgumentParser, texts: Collection[str], idle: Collection[str]
) -> None:
    shown = " ".join(parser.format_help().split())
    names = {canonical(action) for action in register(parser).values()}
    assert set(texts) <= names
    for name in names:
        assert (f"-{name} " in shown or f"-{name}]" in shown) == (name not in idle), name
    for wrong in (".pt", "If verbose", "epsilon", "Args that start with '--'", "Deprecated see"):
        assert wrong not in shown
