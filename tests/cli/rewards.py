"""A sentence with two outputs, for tests of `onmt-entmax bleu --tune length_reward`.

Under a reward, an output y of |y| tokens, the end symbol among them, has the score

    log p(y) + min(length_reward * |y|, length_reward * length_ratio * |x|)

for a source of |x| tokens. Here |x| is 4, and a report lists two outputs:

| output | p(y) | tokens with the end symbol |
|---|---|---|
| `the dog` | 0.3 | 3 |
| `the dog runs fast`, the reference | 0.2 | 5 |

So the longer one is chosen if its reward exceeds that of the shorter by log(0.3 / 0.2) = 0.405.
"""

import json
import math
from pathlib import Path
from typing import Any

from onmt_entmax.cli import bleu
from tests.in_process import success

Record = dict[str, Any]

SHORT, LONG = "the dog", "the dog runs fast"
SHORT_TEXT, REFERENCE_TEXT = "thedog", "thedogrunsfast"
TUNE = ["--tune", "length_reward", "--tokenize", "char"]


def hypothesis(tokens: str, prob: float) -> Record:
    """Return an entry of an n-best list. Its text has no spaces, so only tokens tell its length."""
    text = tokens.replace(" ", "")
    return {"text": text, "tokens": tokens, "prob": prob, "log_prob": math.log(prob)}


def record(**changes: object) -> Record:
    """Return the record of a sentence, by default one whose support is both outputs."""
    hypotheses = [hypothesis(SHORT, 0.3), hypothesis(LONG, 0.2)]
    return {
        "id": 1,
        "source": "s",
        "certificate": "exhaustive",
        "bound": 0.0,
        "mass": 0.5,
        "finished": 2,
        "hypotheses": hypotheses,
        "source_tokens": 4,
        "dropped": 0,
        **changes,
    }


def unfinished_record() -> Record:
    """Return the record of a sentence for which no output ended."""
    return record(
        certificate="none", bound=0.5, finished=0, hypotheses=[], unfinished=REFERENCE_TEXT
    )


def write_report(folder: Path, *records: Record) -> list[Any]:
    """Write a report and its references; return the arguments that name them."""
    report, references = folder / "report", folder / "ref"
    report.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    references.write_text(f"{REFERENCE_TEXT}\n" * len(records))
    return [report, "--reference", references]


def measured(folder: Path, *records: Record) -> list[Record]:
    """Return the measures that the command writes for these records, a row for each reward."""
    output = folder / "measured.json"
    success(bleu.main, [*write_report(folder, *records), *TUNE, "--output", output])
    rewards: list[Record] = json.loads(output.read_text())["rewards"]
    return rewards


def row_of(rows: list[Record], reward: float, ratio: float) -> Record:
    """Return the row of a reward."""
    (row,) = [row for row in rows if (row["length_reward"], row["length_ratio"]) == (reward, ratio)]
    return row
