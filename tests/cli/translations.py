"""Made-up references and translations, for tests of `bleu`, and what sacrebleu measures of them."""

import random
from pathlib import Path

from tests.commands import run

SENTENCES = 60
# Share of the words that another word replaces, by the name of the file.
ERRORS = {"ref": 0.0, "one": 0.1, "two": 0.3}
WORDS = "a the man woman dog cat runs sits , . 's quickly over under".split()


def write_translations(folder: Path) -> None:
    """Write the references, `ref`, and the translations of two systems, `one` and `two`."""
    generator = random.Random(4)
    references = [generator.choices(WORDS, k=generator.randint(4, 14)) for _ in range(SENTENCES)]
    for name, errors in ERRORS.items():
        lines = [
            " ".join(w if generator.random() > errors else generator.choice(WORDS) for w in line)
            for line in references
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def their_scores(folder: Path, *arguments: str) -> str:
    """Return what sacrebleu's own command prints, with the references `ref` of a folder."""
    done = run("tests/cli/sacrebleu_command.py", "ref", *arguments, "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
