"""Lines of the YAML files that `prepare` writes."""

import json
from pathlib import Path

_COMMENTS = 33  # column at which comments begin, behind all but the longest settings


def explained(setting: str, why: str) -> str:
    """Return a line of YAML with a comment."""
    return f"{setting:{_COMMENTS}} # {why}"


def quoted(path: Path) -> str:
    """Return a path as YAML reads it, which may contain `: ` or ` #`."""
    return json.dumps(str(path), ensure_ascii=False)
