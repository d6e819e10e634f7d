"""Training sources and models for tests of `onmt-entmax distill`."""

from pathlib import Path

from tests.cli.tables import write_table
from tests.inflection_models import write_model
from tests.models import vocabularies_of

SOURCES = [
    "lang=english +V +PST a b",
    "lang=english +V b",
    "lang=german +V a",
    "lang=german +V b a",
]


def write_inputs(folder: Path) -> Path:
    """Write the sources `train.src`, and random models; return the folder.

    The models `forward` and `backward` write inflections in either direction; `words` is of another
    task.
    """
    write_table(folder / "train.src", *SOURCES)
    write_model(folder / "forward", 1)
    write_model(folder / "backward", 2, options={"target_order": "right_to_left"})
    write_model(folder / "words", 3, vocabularies_of("ab", "ab"))
    return folder
