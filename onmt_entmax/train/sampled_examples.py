"""A random sample of the development set, the same one in every run."""

import random
from collections.abc import Sequence
from itertools import chain, zip_longest

from onmt_entmax.data.batch import Example


def sample_examples(examples: Sequence[Example], size: int, evenly: bool) -> Sequence[Example]:
    """Return a random sample of examples; without limit to its size, all of them in their order.

    Args:
        examples: the examples to choose from.
        size: how many to return; 0, or more than there are: all.
        evenly: whether to return as many examples of each first source token, which is the
            language if sources name one. If a token has too few, others have more.
    """
    if not 0 < size < len(examples):
        return examples
    if not evenly:
        return random.Random(0).sample(examples, size)
    groups: dict[int, list[Example]] = {}
    for example in random.Random(0).sample(examples, len(examples)):
        groups.setdefault(example.source[0], []).append(example)
    # Each round takes one of each group, or None from a group that has no more.
    rounds = zip_longest(*(groups[token] for token in sorted(groups)))
    in_turn = [example for example in chain.from_iterable(rounds) if example is not None]
    return in_turn[:size]
