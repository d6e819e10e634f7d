"""Lines of the YAML files that `prepare` writes."""

import json
from pathlib import Path

# Comments begin below each other; before them fits the longest setting, `attention_warmup_steps`,
# with a number of nine digits.
_COMMENT_COLUMN = 33


def explained(setting: str, why: str) -> str:
    """Return a line of YAML with a comment."""
    return f"{setting:{_COMMENT_COLUMN}} # {why}"


def quoted(path: Path) -> str:
    """Return a path in quotes as YAML reads them; without, `: ` or ` #` in it would end it."""
    return json.dumps(str(path), ensure_ascii=False)
