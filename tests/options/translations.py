"""Set up a translation by flags."""

from pathlib import Path

from onmt_entmax.options.translate import translation_setup
from onmt_entmax.options.translate_setup import TranslationSetup

MODELS = ("first_model", "second_model")  # folders that do not exist: no setup reads them
SOURCE = "source.txt"
OUTPUT = "output.txt"


def translation_with(folder: Path, flags: str) -> TranslationSetup:
    """Return the setup of a translation by two models, `MODELS`.

    Args:
        folder: folder for `SOURCE`, a file of one line, and `OUTPUT`.
        flags: further options, with spaces between words.
    """
    return translation_setup([*required_flags(folder), *flags.split()])


def required_flags(folder: Path) -> list[str]:
    """Write the source to a folder; return the flags that name the models, source and output."""
    (folder / SOURCE).write_text("a\n")
    return ["-model", *MODELS, "-src", str(folder / SOURCE), "-output", str(folder / OUTPUT)]
