"""The text of the files of options that `onmt-entmax train` and `translate` read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


def to_yaml(options: Mapping[str, Any]) -> str:
    """Return options as YAML, in their order."""
    return str(yaml.safe_dump(dict(options), sort_keys=False, allow_unicode=True))
